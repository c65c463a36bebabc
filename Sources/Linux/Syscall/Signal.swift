import Dispatch

/// An event that one thread raises once, and for which others wait.
public final class Signal: Sendable {
  private let semaphore = DispatchSemaphore(value: 0)

  public init() {}

  public func raise() { semaphore.signal() }

  /// Returns at once if it was raised before. Any number of threads, any number of times.
  public func wait() {
    semaphore.wait()
    semaphore.signal()
  }
}
