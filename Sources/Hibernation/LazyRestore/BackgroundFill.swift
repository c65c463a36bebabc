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
  /// Called once if a step has to be repeated; see `FillPatience`.
  let delayed: (@Sendable (HibernationError) -> Void)?
  private let outcome = Mutex<Outcome?>(nil)
  private let awake = Mutex<Bool?>(nil)
  private let dropsBase = Atomic(false)
  private let over = Semaphore()

  init(
    _ record: ResumeHistory.LazyResume? = nil, missing: UInt64 = 0, base: BaseFile? = nil,
    delayed: (@Sendable (HibernationError) -> Void)? = nil
  ) {
    self.record = record
    self.delayed = delayed
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

extension Hibernator {
  /// Runs a pager to its end. A worker whose pages can't be filled is killed.
  ///
  /// - Parameter beforeRemoval: all pages are there, and the image still is.
  static func page(
    _ image: ImageReader, target: HibernationTarget, cgroup: WorkerCgroup,
    parts: [PagerPart], learning: Pager.Learning?, missing: MissingBytes,
    isFrozen: Bool, goesOnForAnother: Bool, keepsBase: Bool = false,
    of fill: BackgroundFill? = nil, firstOutput: FirstOutput = FirstOutput(),
    turn: ResumeTurns.Turn? = nil, beforeRemoval: (() -> Void)? = nil
  ) -> BackgroundFill.Outcome {
    var outcome = BackgroundFill.Outcome()
    let patience = FillPatience(image.processes.map(\.identity)) { fill?.delayed?($0) }
    do {
      let pager = try Pager(
        image: image, target: target, cgroup: cgroup, parts: parts, firstOutput: firstOutput,
        isFrozen: isFrozen, goesOnForAnother: goesOnForAnother, keepsBase: keepsBase,
        patience: patience)
      pager.filled = { missing.filled($0) }
      pager.resumeTurn = turn
      pager.beforeRemoval = beforeRemoval
      if let fill {
        pager.isAwake = { fill.isAwake }
        pager.mustDropBase = { fill.mustDropBase }
      }
      try pager.run(learning)
      for process in pager.processes { outcome.touched[process.pid] = process.touched }
      outcome.waited = pager.waited
      outcome.halt = pager.halt
      outcome.keepsBase = pager.keepsBase
      outcome.tracked = pager.tracked
      // Not before the worker runs: it would wait for that.
      if pager.keepsBase { outcome.pagesOfBase = image.pagesOfNextBase }
    } catch {
      // If it has ended, its group may already be the next run's.
      let lives = !image.processes.allSatisfy(\.identity.hasEnded)
      // Frozen at once: its memory might be wrong. If that fails, it is killed a moment later all the same.
      if lives { try? writeControl("\(cgroup.path)/cgroup.freeze", "1") }
      let reason = HibernationError.from(error, in: .filling)
      if lives, target.hasSurvivors() {
        try? cgroup.kill()  // A process that survives this is reported as unverifiable.
        outcome.failure = HibernationError(.filling, reason.reason, aftermath: .unverifiable)
      } else {
        discardFile(image.path)
        outcome.failure = HibernationError(.filling, reason.reason, aftermath: .vanished)
      }
    }
    return outcome
  }
}
