import Control
import Glibc
import Linux
import Synchronization

/// What `top` and `ps` read about workers from /proc and cgroups themselves. The daemon does
/// nothing for it.
enum ProcessLook {
  /// Returns the processor time of each running worker. A worker whose time can't be read is left
  /// out.
  static func processorTimes(of workers: [WorkerReport]) -> [String: ProcessorReading] {
    var scan: ProcessScan?
    var readings: [String: ProcessorReading] = [:]
    for worker in workers {
      guard let pid = worker.pid else { continue }
      let used: ProcessorReading.Used
      if let time = group(of: worker)?.cpuMicroseconds() {
        used = .group(time)
      } else {
        // If processes can't be listed, there is no number.
        if scan == nil { scan = try? ProcessScan.read() }
        guard let tree = tree(of: pid, in: scan) else { continue }
        used = .processes(
          Dictionary(tree.processes.map { ($0.identity, nanoseconds($0.cpuTicks)) }) { first, _ in
            first
          })
      }
      readings[worker.name] = ProcessorReading(time: Clocks.monotonic, pid: pid, used: used)
    }
    return readings
  }

  /// Returns the processes of a worker. Their names are the kernel's: reading a command line would
  /// touch the memory of a process that may be hibernated.
  static func processes(of worker: WorkerReport) -> TopProcesses {
    TopProcesses(
      worker: worker.name,
      processes: stats(of: worker).map { stat in
        // Another user's process can't be measured.
        let footprint = (try? Footprint.measure(stat.pid))??.footprint
        return .init(pid: stat.pid, parent: stat.parent, name: stat.name, footprint: footprint)
      })
  }

  static func pids(of worker: WorkerReport) -> [Int32] { stats(of: worker).map(\.pid) }

  private static func stats(of worker: WorkerReport) -> [ProcessStat] {
    var found: [ProcessStat] = []
    if let group = group(of: worker) {
      // A process that has ended meanwhile isn't shown.
      found = ((try? group.processes()) ?? []).compactMap { try? ProcessStat.read($0) }
    } else if let pid = worker.pid {
      // If processes can't be listed, none is shown.
      found = tree(of: pid, in: try? ProcessScan.read())?.processes ?? []
    }
    return found.filter { !$0.isEnded }
  }

  /// Returns the largest processes that belong to none of the workers.
  static func others(than workers: [WorkerReport]) -> TopOthers {
    let owners = ProcessOwners(
      workers.compactMap { worker in
        (worker.pid ?? worker.wrapper).map {
          .init(worker: worker.name, pid: $0, session: worker.pid, cgroup: worker.cgroup?.path)
        }
      })
    do throws(SystemCallError) {
      // The workers' processes are among them, and are left out below.
      let found = try LargestProcesses.read(upTo: mostLarge, until: Deadline(in: .seconds(5)))
      let others = found.processes.filter { owners.worker(of: $0) == nil }
      return TopOthers(
        processes: others.prefix(mostOthers).map {
          .init(pid: $0.pid, name: $0.name, resident: $0.resident)
        })
    } catch { return TopOthers(processes: [], problem: "processes can't be read: \(error)") }
  }

  private static let mostLarge = 400
  private static let mostOthers = 20

  /// Returns the last lines of a worker's log.
  static func log(of worker: WorkerReport) -> TopLog {
    guard let log = LogLocation(worker) else { return TopLog(worker: worker.name, lines: []) }
    do throws(FileError) {
      let file = try log.open()
      let start = max((file.fileSize ?? 0) - Int64(mostLog), 0)
      let bytes = try FileError.wrap("reading", on: log.path) { () throws(SystemCallError) in
        try file.readBytes(upTo: mostLog, at: start)
      }
      var lines = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
      // The first line may have begun before the part that was read.
      if start > 0, lines.count > 1 { lines.removeFirst() }
      if lines.last?.isEmpty == true { lines.removeLast() }
      return TopLog(
        worker: worker.name,
        lines: lines.suffix(mostLines).map {
          String(decoding: $0.prefix(longestLine), as: UTF8.self)
        })
    } catch {
      return TopLog(worker: worker.name, lines: [], problem: "its log can't be read: \(error)")
    }
  }

  /// The part of a log that can be scrolled, in bytes and in lines.
  private static let mostLog = 1 << 17
  private static let mostLines = 1000
  /// The maximum length of a line in bytes.
  private static let longestLine = 1 << 12

  private static func group(of worker: WorkerReport) -> WorkerCgroup? {
    // If the group can't be opened, the worker has ended, or its group isn't visible to this
    // process.
    worker.cgroup.flatMap { try? WorkerCgroup(path: $0.path) }
  }

  private static func tree(of pid: Int32, in scan: ProcessScan?) -> ProcessTree? {
    // If there is no such process, it has ended.
    guard let scan, let root = try? ProcessIdentity.current(of: pid) else { return nil }
    let tree = scan.tree(root: root, session: pid)
    return tree.isEmpty ? nil : tree
  }

  private static func nanoseconds(_ ticks: UInt64) -> UInt64 {
    ticks &* (1_000_000_000 / ClockTicks.perSecond)
  }
}

/// Reads in the background: a file system or a process that hangs must not stop the screen.
final class BackgroundLooks: Sendable {
  enum News: Sendable {
    case processorTimes([String: ProcessorReading])
    case processes(TopProcesses)
    case log(TopLog)
    case others(TopOthers)
  }

  private let jobs = JobPool(name: "dormouse-top", most: 8, endsAfter: .seconds(5))
  /// Logs have threads of their own, so that logs that hang leave the others free.
  private let logJobs = JobPool(name: "dormouse-logs", most: 4, endsAfter: .seconds(5))
  private let news = Mutex<[News]>([])
  private let counter: EventCounter

  init() throws { counter = try EventCounter() }

  /// The descriptor that is readable while results wait.
  var descriptor: Int32 { counter.descriptor.raw }

  /// Reads in the background. Nothing happens while an earlier read about the same `subject` runs.
  func look(at subject: String, _ read: @escaping @Sendable () -> News) {
    look(at: subject, in: jobs, read)
  }

  func lookAtLog(of worker: WorkerReport) {
    look(at: worker.name, in: logJobs) { .log(ProcessLook.log(of: worker)) }
  }

  private func look(
    at subject: String, in jobs: JobPool, _ read: @escaping @Sendable () -> News
  ) {
    _ = jobs.submitIfIdle(about: subject) { [self] in
      let result = read()
      return { [self] in
        news.withLock { $0.append(result) }
        counter.signal()
      }
    }
  }

  func take() -> [News] {
    counter.clear()
    return news.withLock { news in
      defer { news = [] }
      return news
    }
  }
}
