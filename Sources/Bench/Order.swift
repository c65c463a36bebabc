import CLinux
import Glibc
import Linux
import Synchronization

/// A wake that runs on another thread or is finished already.
final class Order: Sendable {
  private let outcome = Mutex<Result<Void, any Error>?>(nil)
  private let done: EventCounter

  init() throws(SystemCallError) { done = try EventCounter() }

  /// A wake that is finished when this returns.
  static func performed(_ body: () throws -> Void) throws -> Order {
    let order = try Order()
    order.complete(Result(catching: body))
    return order
  }

  func complete(_ result: Result<Void, any Error>) {
    outcome.withLock { $0 = result }
    done.signal()
  }

  /// Becomes readable when the wake has finished or failed.
  var descriptor: Int32 { done.descriptor.raw }

  var failure: (any Error)? {
    outcome.withLock { outcome in
      if case .failure(let error) = outcome { error } else { nil }
    }
  }

  /// Waits for the end, and isn't interrupted by signals.
  func finish() throws {
    var entries = [pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)]
    try waitForEvents(&entries, milliseconds: -1)
    if let failure { throw failure }
  }
}
