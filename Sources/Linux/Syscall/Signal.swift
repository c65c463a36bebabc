import Dispatch

/// Raised once, on one thread; others wait for it.
public final class Signal: Sendable {
  private let semaphore = DispatchSemaphore(value: 0)

  public init() {}

  public func raise() { semaphore.signal() }

  /// Returns at once when it was raised before. Any number of threads, any number of times.
  public func wait() {
    semaphore.wait()
    semaphore.signal()
  }
}
