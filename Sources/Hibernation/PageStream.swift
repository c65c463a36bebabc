import Dispatch
import Linux
import Synchronization

/// The rest of a resume: what follows on a thread of its own while the worker runs already.
final class PageStream: Sendable {
  struct Outcome: Sendable {
    /// Pages that somebody waited for, by process.
    var touched: [Int32: Set<UInt64>] = [:]
    /// How long it took to answer them, ns.
    var waited: Int64 = 0
    /// The worker stood still until everything was there.
    var wasHalted = false
    var failure: HibernationError?
  }

  /// What is known of it when it begins.
  let record: ResumeHistory.Stream?

  private let outcome = Mutex<Outcome?>(nil)
  private let over = DispatchSemaphore(value: 0)

  init(_ record: ResumeHistory.Stream? = nil) { self.record = record }

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
