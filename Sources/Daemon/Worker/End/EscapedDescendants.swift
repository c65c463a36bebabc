import Linux
import Supervision

/// Finds and ends processes that have left the tree of their worker. A process leaves it if it
/// starts a session of its own and loses its parent (a classic daemon), unless a cgroup contains
/// it; or if it is moved out of the worker's cgroup. When its parent has ended, it is a child of
/// the daemon, which is its subreaper, and it still has the worker's variables in its environment.
struct EscapedDescendants: Sendable {
  /// The root process of the worker, which has ended.
  let root: ProcessIdentity
  /// The worker's DORMOUSE_RUN.
  let mark: String
  /// The worker's NOTIFY_SOCKET. It is used because the daemon of an earlier version started
  /// workers without a mark.
  let notify: String?
  /// The worker's cgroup. What has left it is in no worker's cgroup.
  var cgroup: WorkerCgroup?
  let processes: any Processes

  /// Kills these processes, and returns their number. A process that has also changed its
  /// environment isn't found. Don't call this on the event loop: to read the environment of a
  /// process waits for that process's memory.
  ///
  /// - Parameter limit: the time from this call on. Processes that are found later are still
  ///   killed, but then the search ends.
  func kill(within limit: Duration) -> Clearing {
    let deadline = Deadline(in: limit)
    var killed: Set<ProcessIdentity> = []
    var failure: String?
    // A process whose parent was ended in the last round is the daemon's child in this round.
    for round in 1... {
      // A wrapper that the worker had started isn't the worker's: it ends its program in an orderly
      // way.
      let new = processes.adoptedOrphans().filter {
        $0.startTime >= root.startTime && !killed.contains($0.identity) && $0.identity != root
          && $0.name != WrapperTree.processName && !isInGroup($0.pid) && holdsMark($0.pid)
      }
      if new.isEmpty { break }
      let isLate = deadline.hasPassed
      for stat in new {
        killed.insert(stat.identity)
        do throws(SystemCallError) { try processes.kill(stat, until: deadline) } catch {
          failure = "\(error)"
        }
      }
      if isLate {
        failure =
          "after \(limit.text), processes that have left its tree were still found "
          + "(looks: \(round), killed: \(killed.count)); others may run"
        break
      }
    }
    return Clearing(escaped: killed.count, failure: failure)
  }

  /// Whether a process is in the cgroup of a worker. The memory of other workers, which may be in
  /// their images, isn't touched for their environment.
  private func isInGroup(_ pid: Int32) -> Bool {
    // The environment of a process that can't be read is empty.
    guard cgroup != nil, let text = try? readText("/proc/\(pid)/cgroup") else { return false }
    // The path of each worker's cgroup contains this.
    return text.contains("/worker-")
  }

  private func holdsMark(_ pid: Int32) -> Bool {
    let entries = ["\(LaunchPlan.markVariable)=\(mark)", notify.map { "NOTIFY_SOCKET=\($0)" }]
    return processes.environment(of: pid).contains { entries.contains(String($0)) }
  }
}
