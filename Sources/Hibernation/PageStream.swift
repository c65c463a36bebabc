import Dispatch
import Linux
import Synchronization

/// The rest of a resume: what follows on a thread of its own while the worker runs already.
final class PageStream: Sendable {
  struct Outcome: Sendable {
    /// Pages that somebody waited for, by process.
    var touched: [Int32: Set<UInt64>] = [:]
    var failure: HibernationError?
  }

  private let outcome = Mutex<Outcome?>(nil)
  private let over = DispatchSemaphore(value: 0)

  func end(_ result: Outcome) {
    outcome.withLock { $0 = result }
    over.signal()
  }

  /// Waits for its end.
  func wait() -> Outcome {
    over.wait()
    over.signal()
    return outcome.withLock { $0 } ?? Outcome()
  }
}
