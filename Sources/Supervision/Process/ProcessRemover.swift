import CLinux
import Glibc
import Linux
import Synchronization

/// Ends programs that ran for a worker and aren't needed any more, with all processes that they
/// have started. Finding these needs a scan of all processes of the machine, on a thread of its
/// own. Nothing here waits for a process to end: one that hangs in a file system ends when that
/// answers.
public final class ProcessRemover: Sendable {
  /// The instance that the daemon uses.
  public static let shared = ProcessRemover()

  private let queue = WorkQueue(name: "dormouse-remove")
  private let pids = Mutex<Set<Int32>>([])

  public init() {}

  /// True while the process must not be reaped. As long as it keeps its pid, no other process's
  /// session can have it.
  public func isRemoving(_ pid: Int32) -> Bool { pids.withLock { $0.contains(pid) } }

  /// Kills a process and what it has started. The process is reaped here if it has ended by then,
  /// and otherwise together with the daemon's other orphans. The call doesn't block.
  public func remove(_ process: SpawnedProcess) {
    _ = clinux_pidfd_send_signal(process.pidfd.raw, SIGKILL)
    pids.withLock { _ = $0.insert(process.pid) }
    queue.submit { [self] in
      // The scan may be refused. SIGKILL for the program itself has been sent already.
      try? ProcessTree.killAll(root: process.identity, session: process.pid)
      // Before the kill, the worker's orphans would have counted as what the program has started.
      WrapperTree.forget(process.pid)
      // The order matters: either a scan for orphans in between reaps it, or SIGCHLD arrives later.
      pids.withLock { _ = $0.remove(process.pid) }
      process.reapIfEnded()
    }
  }
}
