import Linux
import Synchronization

/// How many bytes of a resumed worker are still in its image only. They return to memory without any action
/// of the worker, so they count as its memory already.
public final class MissingBytes: Sendable {
  private let count: Atomic<UInt64>

  init(_ count: UInt64) { self.count = Atomic(count) }

  /// Never less than what is missing. Until the fill ends, it may be somewhat more.
  public var bytes: UInt64 { count.load(ordering: .relaxed) }

  /// A chunk is in place.
  func filled(_ length: Int) {
    let length = UInt64(length)
    _ = count.subtract(min(length, bytes), ordering: .relaxed)
  }

  func end() { count.store(0, ordering: .relaxed) }
}

extension ImageReader {
  /// Bytes that a lazy restore leaves for the background fill.
  var backgroundFillLength: UInt64 {
    steps.reduce(0) { $0 + ($1.isBackgroundFilled ? UInt64($1.length) : 0) }
  }

  /// Whether the background fill has pages of the process with this index.
  func hasBackgroundFill(of process: Int) -> Bool {
    steps.contains { $0.isBackgroundFilled && $0.process == process }
  }
}

/// A halt of a worker that forked or moved memory while pages were missing: it was frozen until all pages were in place.
struct Halt: Sendable, Equatable {
  /// Time of the monotonic clock, in ns.
  var began: Int64
  var length: Int64 = 0
}

/// What is known about writes to a process since it was resumed, when all of its pages are in place.
struct TrackedFill: Sendable {
  /// Mappings whose writes are visible from now on.
  var armed: [PageRange] = []
  /// Their pages that are as they were filled.
  var unwritten: [PageRange] = []
}

/// The second part of a lazy restore: it fills the remaining pages on a thread of its own while the worker
/// runs.
final class BackgroundFill: Sendable {
  struct Outcome: Sendable {
    /// Pages that a thread of the worker waited for, by process.
    var touched: [Int32: TouchedPages] = [:]
    /// How long the worker waited for these pages, in ns.
    var waited: Int64 = 0
    /// `nil`: the worker wasn't halted.
    var halt: Halt?
    /// The image, or the base that it names, is still on disk.
    var keepsBase = false
    /// The pages of the base that stays, as they were in the image.
    var pagesOfBase: [ProcessIdentity: [PageRange]] = [:]
    /// By process, where writes are tracked from the resume on.
    var tracked: [Int32: TrackedFill] = [:]
    var failure: HibernationError?
  }

  /// What is known about the resume when it begins.
  let record: ResumeHistory.LazyResume?

  let missing: MissingBytes
  /// What stays on disk when all pages are in place.
  let base: BaseFile?
  private let outcome = Mutex<Outcome?>(nil)
  private let awake = Mutex<Bool?>(nil)
  private let dropsBase = Atomic(false)
  private let over = Semaphore()

  init(_ record: ResumeHistory.LazyResume? = nil, missing: UInt64 = 0, base: BaseFile? = nil) {
    self.record = record
    self.base = base
    self.missing = MissingBytes(missing)
  }

  /// The resume has let the worker run, or has failed to.
  func woke(_ success: Bool) { awake.withLock { $0 = success } }

  /// `nil`: it is about to.
  var isAwake: Bool? { awake.withLock { $0 } }

  /// Nothing is to stay on disk when all pages are in place.
  func dropBase() { dropsBase.store(true, ordering: .releasing) }

  var mustDropBase: Bool { dropsBase.load(ordering: .acquiring) }

  func end(_ result: Outcome) {
    missing.end()
    outcome.withLock { $0 = result }
    over.signal()
  }

  var hasSucceeded: Bool { outcome.withLock { $0.map { $0.failure == nil } ?? false } }

  /// Waits for the end of the fill.
  func wait() -> Outcome {
    over.wait()
    over.signal()
    return outcome.withLock { $0 } ?? Outcome()
  }
}

/// A value for another thread, which keeps no reference after it has taken it.
final class Handed<Value: Sendable>: Sendable {
  private let value: Mutex<[Value]>
  init(_ value: [Value]) { self.value = Mutex(value) }
  func take() -> [Value] {
    value.withLock { value in
      defer { value = [] }
      return value
    }
  }
}
