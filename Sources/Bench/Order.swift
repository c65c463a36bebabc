import CLinux
import Glibc
import Linux
import Synchronization

/// An order to wake, under way on another thread or done already.
final class Order: Sendable {
  private let outcome = Mutex<Result<Void, any Error>?>(nil)
  private let done: EventCounter

  init() throws(SystemCallError) { done = try EventCounter() }

  /// One that is carried out before it returns.
  static func performed(_ body: () throws -> Void) throws -> Order {
    let order = try Order()
    order.complete(Result(catching: body))
    return order
  }

  func complete(_ result: Result<Void, any Error>) {
    outcome.withLock { $0 = result }
    done.signal()
  }

  /// Becomes readable when it has been carried out, or has failed.
  var descriptor: Int32 { done.descriptor.raw }

  var failure: (any Error)? {
    outcome.withLock { outcome in
      if case .failure(let error) = outcome { error } else { nil }
    }
  }

  /// Not to be interrupted: what has been begun is finished.
  func finish() throws {
    var entries = [pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)]
    try waitForEvents(&entries, milliseconds: -1)
    if let failure { throw failure }
  }
}
