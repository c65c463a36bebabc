import CLinux
import Glibc

/// A counting semaphore of POSIX (sem_overview(7)); it begins at zero. libdispatch's would do the same, and takes 0.2 MB
/// more of a process's memory.
public final class Semaphore: Sendable {
  // Safe: the pointer is set once and the semaphore lives as long as this object; its functions are made for calls from
  // several threads.
  private nonisolated(unsafe) let raw = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

  public init() {
    // Fails only for a value that is too large.
    sem_init(raw, 0, 0)
  }

  deinit {
    sem_destroy(raw)
    raw.deallocate()
  }

  /// Lets one thread continue, now or when it waits. From any thread.
  public func signal() {
    // Fails only when it was raised 2³¹ times without a wait.
    sem_post(raw)
  }

  /// Blocks the calling thread until there was a signal that no other thread has taken.
  public func wait() {
    // A signal handler may interrupt it; it fails in no other way.
    while sem_wait(raw) != 0 {}
  }

  /// The same, for a limited time by the monotonic clock. False: the time has passed.
  public func wait(within time: Duration) -> Bool { wait(until: Deadline(in: time)) }

  public func wait(until deadline: Deadline) -> Bool {
    clinux_semaphore_wait(raw, deadline.nanoseconds) == 0
  }
}
