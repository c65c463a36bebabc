import CLinux
import Glibc

/// A counting semaphore of POSIX (sem_overview(7)), which begins at 0. libdispatch's would do the
/// same, and uses 0.2 MB more of a process's memory.
public final class Semaphore: Sendable {
  // This is safe: the pointer is set once, the semaphore lives as long as this object, and its
  // functions may be called from several threads.
  private nonisolated(unsafe) let raw = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

  public init() {
    // It fails only for a value that is too large.
    sem_init(raw, 0, 0)
  }

  deinit {
    sem_destroy(raw)
    raw.deallocate()
  }

  /// Raises the count by 1, which lets one waiting thread, or the next one that waits, continue.
  /// Any thread may call it.
  public func signal() {
    // It fails only if the count is 2³¹ - 1.
    sem_post(raw)
  }

  /// Blocks the calling thread until the count is above 0, and lowers it by 1.
  public func wait() {
    // A signal handler may interrupt the call; it fails in no other way.
    while sem_wait(raw) != 0 {}
  }

  /// Waits for a limited time of the monotonic clock. It returns false if the time has passed.
  public func wait(within time: Duration) -> Bool { wait(until: Deadline(in: time)) }

  /// Waits until a deadline. It returns false if the deadline has passed.
  public func wait(until deadline: Deadline) -> Bool {
    clinux_semaphore_wait(raw, deadline.nanoseconds) == 0
  }
}
