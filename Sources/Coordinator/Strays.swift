import Glibc
import Lifecycle
import Linux

/// A process that starts a session of its own and loses its parent (a daemon of the old kind) leaves
/// its worker's tree, where no cgroup holds it. It becomes our child, since we are its subreaper, and
/// what the worker was launched with is still in its environment.
extension Daemon {
  /// Ends those of a worker whose root process has ended; how many there were. Not found is who has
  /// changed its environment as well.
  func killStrays(of runtime: WorkerRuntime) -> Int {
    guard let process = runtime.process, process.cgroup == nil, let notify = runtime.notify else {
      return 0
    }
    let mark = "NOTIFY_SOCKET=\(notify.path)"
    var killed: Set<ProcessIdentity> = []
    // Whoever lost its parent to the last round is our child in this one.
    while true {
      let new = children().filter {
        $0.startTime >= process.identity.startTime && !killed.contains($0.identity)
          && $0.identity != process.identity && Self.environment(of: $0.pid, holds: mark)
      }
      if new.isEmpty { return killed.count }
      for stat in new {
        killed.insert(stat.identity)
        do throws(SystemCallError) {
          try ProcessTree.killAll(root: stat.identity)
        } catch { log(.warning, "\(runtime.id): \(error)") }
      }
    }
  }

  private func children() -> [ProcessStat] {
    let words = (try? readText("/proc/self/task/\(getpid())/children")) ?? ""
    return words.split(separator: " ").compactMap { word in
      guard let stat = Int32(word).flatMap({ try? ProcessStat.read($0) }), !stat.isEnded else {
        return nil
      }
      return stat
    }
  }

  private static func environment(of pid: Int32, holds entry: String) -> Bool {
    let text = (try? readText("/proc/\(pid)/environ")) ?? ""
    return text.split(separator: "\0").contains { $0 == entry }
  }
}
