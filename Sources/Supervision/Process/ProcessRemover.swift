import CLinux
import Glibc
import Linux
import Synchronization

/// Ends programs that ran for a worker and aren't needed any more, with all that they have started. That takes
/// a look at all processes of the machine, on a thread of its own. Nothing here waits for an end: a process in
/// a file system that hangs dies when that answers.
public final class ProcessRemover: Sendable {
  /// The daemon's.
  public static let shared = ProcessRemover()

  private let queue = WorkQueue(name: "dormouse-remove")
  private let pids = Mutex<Set<Int32>>([])

  public init() {}

  /// It must not be reaped yet: while it has its number, no other process's session can have it.
  public func holds(_ pid: Int32) -> Bool { pids.withLock { $0.contains(pid) } }

  /// Kills it and what it has started. It is reaped here if it has ended by then, and otherwise with the
  /// daemon's other orphans.
  public func remove(_ process: SpawnedProcess) {
    _ = clinux_pidfd_send_signal(process.pidfd.raw, SIGKILL)
    pids.withLock { _ = $0.insert(process.pid) }
    queue.submit { [self] in
      // A process that may not be looked at can't be killed; SIGKILL for the program itself has been sent.
      try? ProcessTree.killAll(root: process.identity, session: process.pid)
      // In this order: a look for orphans in between reaps it, or SIGCHLD comes later.
      pids.withLock { _ = $0.remove(process.pid) }
      process.reapIfEnded()
    }
  }

  /// Returns when all that was handed over before has been killed. For tests.
  public func finish() { queue.perform {} }
}
