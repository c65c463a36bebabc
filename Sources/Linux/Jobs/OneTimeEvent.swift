/// An event that one thread raises once, and for which other threads wait.
public final class OneTimeEvent: Sendable {
  private let semaphore = Semaphore()

  public init() {}

  public func raise() { semaphore.signal() }

  /// True if the event was raised.
  public var isRaised: Bool { wait(until: Deadline(in: .zero)) }

  /// Waits for the event; it returns at once if the event was raised before. Any number of threads
  /// may call it, any number of times.
  public func wait() {
    semaphore.wait()
    semaphore.signal()
  }

  /// Waits for the event until a deadline. It returns false if the deadline has passed.
  @discardableResult
  public func wait(until deadline: Deadline) -> Bool {
    guard semaphore.wait(until: deadline) else { return false }
    semaphore.signal()
    return true
  }
}
