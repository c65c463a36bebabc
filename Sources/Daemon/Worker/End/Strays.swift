import Lifecycle
import Linux
import Supervision

/// A process that starts a session of its own and loses its parent (a classic daemon) leaves its worker's tree,
/// if no cgroup holds it. It becomes the daemon's child, since the daemon is its subreaper, and the worker's
/// variables are still in its environment.
struct Strays: Sendable {
  /// Which has ended.
  let root: ProcessIdentity
  private let entries: Set<String>
  private let processes: any Processes

  /// - Parameters:
  ///   - mark: the worker's DORMOUSE_RUN.
  ///   - notify: its NOTIFY_SOCKET: an earlier version's daemon started workers without a mark.
  init(
    root: ProcessIdentity, mark: String, notify: String?, processes: any Processes
  ) {
    self.root = root
    self.processes = processes
    var entries: Set = ["\(LaunchPlan.markVariable)=\(mark)"]
    if let notify { entries.insert("NOTIFY_SOCKET=\(notify)") }
    self.entries = entries
  }

  /// Ends them, and returns how many there were. A process that has also changed its environment isn't found.
  /// Not for the event loop: reading a process's environment waits for that process's memory.
  ///
  /// - Parameter limit: from this call on. What is found after it is still killed, and then no more is looked for.
  func kill(within limit: Duration) -> (killed: Int, failure: String?) {
    let deadline = Deadline(in: limit)
    var killed: Set<ProcessIdentity> = []
    var failure: String?
    // A process whose parent ended in the last round is the daemon's child in this one.
    for round in 1... {
      let new = processes.adoptedOrphans().filter {
        $0.startTime >= root.startTime && !killed.contains($0.identity) && $0.identity != root
          && holdsMark($0.pid)
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
          "after \(limit.spoken), processes that have left its tree were still found "
          + "(looks: \(round), killed: \(killed.count)); others may run"
        break
      }
    }
    return (killed.count, failure)
  }

  private func holdsMark(_ pid: Int32) -> Bool {
    processes.environment(of: pid).contains { entries.contains(String($0)) }
  }
}
