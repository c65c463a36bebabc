import Dispatch
import Linux
import Synchronization

/// How many bytes of a resumed worker are still in its image only. They will be its own again without
/// any action of the worker, so they count as its memory already.
public final class MissingBytes: Sendable {
  private let count: Atomic<UInt64>

  init(_ count: UInt64) { self.count = Atomic(count) }

  /// Never less than what is missing; up to the end of the fill it may be somewhat more.
  public var bytes: UInt64 { count.load(ordering: .relaxed) }

  /// A chunk is in place.
  func filled(_ length: Int) {
    let length = UInt64(length)
    _ = count.subtract(min(length, bytes), ordering: .relaxed)
  }

  func end() { count.store(0, ordering: .relaxed) }
}

extension ImageReader {
  /// Bytes that a lazy restore leaves to the background fill.
  var backgroundFillLength: UInt64 {
    chunks.reduce(0) { $0 + ($1.isBackgroundFilled ? UInt64($1.length) : 0) }
  }

  /// Whether that has pages of a process, by its index.
  func hasBackgroundFill(of process: Int) -> Bool {
    chunks.contains { $0.isBackgroundFilled && Int($0.process) == process }
  }
}

/// A worker that forked, or gave memory back, while pages were missing: it stood until all were there.
struct Halt: Sendable, Equatable {
  /// Of the monotonic clock, ns.
  var began: Int64
  var length: Int64 = 0
  var isForFork: Bool
  /// Processor time of the worker's group in µs: from its wake to the halt, and in the moment after it.
  var workBefore: UInt64 = 0
  var workAfter: UInt64 = 0

  /// How long it is looked at afterwards, in µs.
  static let watch: UInt32 = 10_000

  /// It was in the middle of what it was woken for: whoever waits for that waits for the halt too. A
  /// thread that ends behind its answer gives its stack back, which halts the worker and delays nobody.
  var delaysWork: Bool { isForFork || workAfter * 2 > workBefore }
}

/// The second part of a lazy restore: what follows on a thread of its own while the worker runs already.
final class BackgroundFill: Sendable {
  struct Outcome: Sendable {
    /// Pages that somebody waited for, by process.
    var touched: [Int32: Set<UInt64>] = [:]
    /// How long it took to answer them, ns.
    var waited: Int64 = 0
    /// `nil`: the worker wasn't halted.
    var halt: Halt?
    var failure: HibernationError?
  }

  /// What is known of it when it begins.
  let record: ResumeHistory.LazyResume?

  let missing: MissingBytes
  private let outcome = Mutex<Outcome?>(nil)
  private let over = DispatchSemaphore(value: 0)

  init(_ record: ResumeHistory.LazyResume? = nil, missing: UInt64 = 0) {
    self.record = record
    self.missing = MissingBytes(missing)
  }

  func end(_ result: Outcome) {
    missing.end()
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
