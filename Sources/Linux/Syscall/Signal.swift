/// An event that one thread raises once, and for which others wait.
public final class Signal: Sendable {
  private let semaphore = Semaphore()

  public init() {}

  public func raise() { semaphore.signal() }

  /// Returns at once if it was raised before. Any number of threads, any number of times.
  public func wait() {
    semaphore.wait()
    semaphore.signal()
  }

  /// The same for a limited time. False: the deadline has passed.
  @discardableResult
  public func wait(until deadline: Deadline) -> Bool {
    guard semaphore.wait(until: deadline) else { return false }
    semaphore.signal()
    return true
  }
}
