import Glibc
import Linux
import Synchronization

/// An order to wake the program, which another thread carries out, or which is complete already.
final class WakeOrder: Sendable {
  private let outcome = Mutex<Result<Void, any Error>?>(nil)
  private let done: EventCounter

  init() throws(SystemCallError) { done = try EventCounter() }

  /// Carries out an order. It is complete when this returns.
  static func performed(_ body: () throws -> Void) throws -> WakeOrder {
    let order = try WakeOrder()
    order.complete(Result(catching: body))
    return order
  }

  func complete(_ result: Result<Void, any Error>) {
    outcome.withLock { $0 = result }
    done.signal()
  }

  /// The descriptor that becomes readable when the wake is complete or has failed.
  var descriptor: Int32 { done.descriptor.raw }

  var failure: (any Error)? {
    outcome.withLock { outcome in
      if case .failure(let error) = outcome { error } else { nil }
    }
  }

  /// Waits until the order is complete. Signals don't interrupt the wait.
  func finish() throws {
    var entries = [pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)]
    try waitForEvents(&entries, milliseconds: -1)
    if let failure { throw failure }
  }
}
