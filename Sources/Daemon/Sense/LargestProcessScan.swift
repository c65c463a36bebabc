import Control
import Linux
import Policy

/// Finds the largest processes of the machine when memory has run out. A machine may have thousands
/// of processes, so they are read on another thread and until a deadline. It belongs to the event
/// loop's thread.
struct LargestProcessScan {
  let jobs: LoopJobs
  let workers: WorkerRegistry

  static let maxProcesses = 5
  static let limit = Duration.seconds(2)
  /// The time after which the caller continues without a result. A process may keep others from
  /// reading even its small files.
  private static let timeout = Duration.seconds(5)

  /// Finds the processes. `then` is called on the event loop, with nil if they can't be read in
  /// time.
  func measure(then: @escaping (JetsamRecord.Processes?) -> Void) {
    let owners = ProcessOwners(
      workers.values.compactMap { worker in
        worker.process.map {
          .init(
            worker: worker.id.name, pid: $0.identity.pid, session: $0.session,
            cgroup: $0.cgroup?.path)
        }
      })
    jobs.run(about: "largest processes", within: Self.timeout) { () -> JetsamRecord.Processes? in
      let deadline = Deadline(in: Self.limit)
      // If /proc can't be read, the report lacks them.
      let largest = try? LargestProcesses.read(upTo: Self.maxProcesses, until: deadline)
      guard let largest else { return nil }
      let list = largest.processes.map {
        JetsamRecord.Process(
          pid: $0.pid, name: $0.name, resident: $0.resident, worker: owners.worker(of: $0))
      }
      return JetsamRecord.Processes(list: list, isComplete: largest.isComplete)
    } then: {
      then($0.value ?? nil)
    }
  }
}

extension JetsamRecord.Processes {
  /// A clause that names the largest process that isn't a worker's; nil if there is none.
  var sentenceOnLargestOther: String? {
    list.first { $0.worker == nil }.map {
      "the largest process that isn't a worker's: \($0.name) (pid \($0.pid)), "
        + "\(ByteCount($0.resident)) resident"
    }
  }
}
