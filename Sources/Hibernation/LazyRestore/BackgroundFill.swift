import Linux
import Synchronization

extension ImageReader {
  /// The number of bytes that a lazy restore leaves for the background fill.
  var backgroundFillLength: UInt64 {
    steps.reduce(0) { $0 + ($1.isBackgroundFilled ? UInt64($1.length) : 0) }
  }

  /// The part of `backgroundFillLength` that the base doesn't have; `nil` without a base.
  var fillLengthOutsideBase: UInt64? {
    base.map { _ in
      steps.reduce(0) { $0 + ($1.isOfBase || !$1.isBackgroundFilled ? 0 : UInt64($1.length)) }
    }
  }

  /// True if the background fill has pages of the process with this index.
  func hasBackgroundFill(of process: Int) -> Bool {
    steps.contains { $0.isBackgroundFilled && $0.process == process }
  }
}

/// A halt of a worker that forked or moved memory while pages were missing: it was frozen until all
/// pages were in place.
struct Halt: Sendable, Equatable {
  /// When the halt began, in ns of the monotonic clock.
  /// How long the halt lasted, in ns.
  var began: Int64
  var length: Int64 = 0
}

/// The writes to a process between its resume and the moment when all of its pages were in place.
struct TrackedFill: Sendable {
  /// Mappings whose writes are visible from now on.
  var armed: [PageRange] = []
  /// Pages of these mappings that are as they were filled.
  var unwritten: [PageRange] = []
}

/// The second part of a lazy restore. It fills the remaining pages on its own thread while the
/// worker runs.
final class BackgroundFill: Sendable {
  struct Outcome: Sendable {
    /// Pages that a thread of the worker waited for, by pid.
    var touched: [Int32: TouchedPages] = [:]
    /// The time for which the worker waited for these pages, in ns.
    var waited: Int64 = 0
    /// The halt of the worker, if there was one.
    var halt: Halt?
    /// The reason for the halt, as a clause.
    var haltReason: String?
    /// True if the image, or the base that it names, is still on disk.
    var keepsBase = false
    /// The pages of the base that stays, as they were in the image.
    var pagesOfBase: [ProcessIdentity: [PageRange]] = [:]
    /// The tracked writes by pid, for processes whose writes are tracked from the resume on.
    var tracked: [Int32: TrackedFill] = [:]
    /// What is missing, if the worker is frozen to be trimmed again.
    var handedOver: MissingPages?
    var failure: HibernationError?
  }

  /// What is known about the resume when it begins.
  let record: ResumeHistory.LazyResume?

  let missing: MissingBytes
  /// True if `missing` was counted by an earlier fill of this daemon.
  let isCounted: Bool
  /// The file that stays on disk when all pages are in place.
  let base: BaseFile?
  /// Set for a trimmed worker: its missing pages stay in the image until this is requested.
  let trimEnd: TrimEnd?
  /// Called once if a step has to be repeated; see `FillRetry`.
  let delayed: (@Sendable (HibernationError) -> Void)?
  /// The number of bytes of the background fill that the base doesn't have; `nil` without a base.
  let lengthOutsideBase: UInt64?
  let target: HibernationTarget
  let image: String
  /// The process that continues if this one dies.
  private let standby = Mutex<StandbyPagerConnection?>(nil)
  private let outcome = Mutex<Outcome?>(nil)
  private let awake = Mutex<Bool?>(nil)
  private let dropsBase = Atomic(false)
  private let over = Semaphore()

  /// - Parameters:
  ///   - missing: in bytes.
  ///   - counter: counts them; `nil`: a new one.
  init(
    _ record: ResumeHistory.LazyResume? = nil, missing: UInt64, counter: MissingBytes? = nil,
    lengthOutsideBase: UInt64? = nil, target: HibernationTarget, image: String,
    base: BaseFile? = nil,
    trimEnd: TrimEnd? = nil, delayed: (@Sendable (HibernationError) -> Void)? = nil
  ) {
    (self.target, self.image) = (target, image)
    self.trimEnd = trimEnd
    self.record = record
    self.delayed = delayed
    self.base = base
    self.lengthOutsideBase = lengthOutsideBase
    isCounted = counter != nil
    self.missing =
      counter
      ?? MissingBytes(missing, isTrimmed: trimEnd != nil, in: ImageDirectory(of: image))
  }

  /// Announces the fill to the standby pager. Call it before the worker runs, and again for another
  /// standby pager.
  func announce(to standby: StandbyPagerConnection?, _ handles: [FaultHandle]) {
    self.standby.withLock { $0 = standby }
    standby?.announce(
      target, image: image,
      keeping: trimEnd == nil ? [] : handles.map(\.userfault.descriptor))
  }

  func retract() { standby.withLock { $0 }?.retract(image: image) }

  /// Records that the resume has let the worker run, or has failed to.
  func didWake(_ success: Bool) { awake.withLock { $0 = success } }

  /// The result of the resume. It is `nil` until the resume has let the worker run, or has failed
  /// to.
  var isAwake: Bool? { awake.withLock { $0 } }

  /// Asks the pager to leave no file on disk when all pages are in place.
  func dropBase() { dropsBase.store(true, ordering: .releasing) }

  var mustDropBase: Bool { dropsBase.load(ordering: .acquiring) }

  func end(_ result: Outcome) {
    if result.handedOver == nil { missing.end() }
    outcome.withLock { $0 = result }
    over.signal()
    trimEnd?.didEnd()
  }

  /// Asks the pager of a trimmed worker to freeze it and to end with its pages missing.
  ///
  /// - Parameter still: limits the time until the worker is frozen.
  /// - Returns: `nil` if the pager serves the worker on. An outcome without `handedOver` means that
  ///   all pages are in place.
  func handOver(_ still: Standstill) -> Outcome? {
    guard trimEnd?.requestHandOver(still, within: Self.handOverTimeout) == true else { return nil }
    over.wait()
    over.signal()
    return outcome.withLock { $0 }
  }

  /// The pager may be reading from a slow disk.
  private static let handOverTimeout = Duration.seconds(10)

  var hasEnded: Bool { outcome.withLock { $0 != nil } }

  /// True if all pages are in place.
  var hasSucceeded: Bool {
    outcome.withLock { $0.map { $0.failure == nil && $0.handedOver == nil } ?? false }
  }

  /// What is missing of a worker whose pager has ended. It is frozen, or about to be trimmed again.
  var handedOver: MissingPages? { outcome.withLock { $0?.handedOver } }

  /// Waits for the end of the fill. The pages of a trimmed worker are all filled then.
  func wait() -> Outcome {
    trimEnd?.request()
    over.wait()
    over.signal()
    return outcome.withLock { $0 } ?? Outcome()
  }
}

extension Hibernator {
  /// Starts the thread of a pager. Returns false if there is none.
  func startPager(
    of target: HibernationTarget, from image: ImageReader, as fill: BackgroundFill,
    for pagedProcesses: [PagedProcess],
    run: @escaping PagerRun.Page
  ) -> Bool {
    let (fillFailed, fillEnded) = (fillFailed, fillEnded)
    let trimLost = fill.trimEnd == nil ? nil : trimLost
    let pager = PagerRun(pagedProcesses, page: run) { outcome in
      // The standby pager continues the earlier trim if this daemon dies before the next one.
      if outcome.handedOver == nil { fill.retract() }
      if let failure = outcome.failure { fillFailed?(target.name, failure) }
      fill.end(outcome)
      if let reason = outcome.haltReason, outcome.failure == nil { trimLost?(target.name, reason) }
      if outcome.failure == nil, outcome.handedOver == nil { fillEnded?(target.name) }
      SelfMemory.releaseUnusedSoon()
    }
    let isStarted = ShortThreads.start(name: "dormouse-pager") { pager.run() }
    if isStarted { fills[target.name] = fill }
    return isStarted
  }

  /// Runs a pager to its end, which it reaches unless it is a trimmed worker's. A worker whose
  /// pages can't be filled is killed.
  static func page(
    _ image: ImageReader, target: HibernationTarget, cgroup: WorkerCgroup,
    pagedProcesses: [PagedProcess], missing: MissingBytes, isFrozen: Bool, isContinuation: Bool,
    keepsBase: Bool = false, staysFrozen: Bool = false, beforeRemoval: (() -> Void)? = nil
  ) -> BackgroundFill.Outcome {
    var resting: Pager?
    let outcome = page(
      image, target: target, cgroup: cgroup, pagedProcesses: pagedProcesses, learning: nil,
      missing: missing, isFrozen: isFrozen, isContinuation: isContinuation, keepsBase: keepsBase,
      staysFrozen: staysFrozen, beforeRemoval: beforeRemoval, resting: &resting)
    return outcome ?? BackgroundFill.Outcome()
  }

  /// Runs a pager to its end, or until it rests. A worker whose pages can't be filled is killed.
  ///
  /// - Parameters:
  ///   - staysFrozen: the worker is suspended, and stays frozen when all pages are in place.
  ///   - beforeRemoval: called when all pages are in place, and the image still exists.
  ///   - resting: the pager that continues after a rest; after this call, the one that rests.
  /// - Returns: `nil` if the pager rests.
  static func page(
    _ image: ImageReader, target: HibernationTarget, cgroup: WorkerCgroup,
    pagedProcesses: [PagedProcess], learning: Pager.Learning?, missing: MissingBytes,
    isFrozen: Bool, isContinuation: Bool, keepsBase: Bool = false,
    of fill: BackgroundFill? = nil, firstOutput: FirstOutput = FirstOutput(),
    turn: ResumeTurns.Turn? = nil, staysFrozen: Bool = false, beforeRemoval: (() -> Void)? = nil,
    resting: inout Pager?
  ) -> BackgroundFill.Outcome? {
    var outcome = BackgroundFill.Outcome()
    let retry = FillRetry(image.processes.map(\.identity)) { fill?.delayed?($0) }
    let rested = resting
    resting = nil
    do {
      let pager =
        try rested
        ?? Pager(
          image: image, target: target, cgroup: cgroup, pagedProcesses: pagedProcesses,
          firstOutput: firstOutput,
          isFrozen: isFrozen, isContinuation: isContinuation, keepsBase: keepsBase,
          retry: retry)
      pager.filled = { missing.didFill($0) }
      pager.recounted = { missing.set($0) }
      pager.isCounted = fill?.isCounted == true
      pager.trimEnd = fill?.trimEnd
      pager.resumeTurn = turn
      (pager.staysFrozen, pager.beforeRemoval) = (staysFrozen, beforeRemoval)
      if let fill {
        pager.isAwake = { fill.isAwake }
        pager.mustDropBase = { fill.mustDropBase }
      }
      if try !pager.run(learning) {
        resting = pager
        return nil
      }
      for process in pager.processes { outcome.touched[process.pid] = process.touched }
      outcome.waited = pager.waited
      outcome.handedOver = pager.handedOver
      if pager.handedOver != nil { return outcome }
      (outcome.halt, outcome.haltReason) = (pager.halt, pager.haltReason)
      outcome.keepsBase = pager.keepsBase
      outcome.tracked = pager.tracked
      // This isn't computed before the worker runs: the worker would wait for it.
      if pager.keepsBase { outcome.pagesOfBase = image.pagesOfNextBase }
    } catch {
      // If the worker has ended, its group may already be the next run's.
      let lives = !image.processes.allSatisfy(\.identity.hasEnded)
      // The worker is frozen at once, because its memory might be wrong. If that fails, it is
      // killed a moment later all the same.
      if lives { try? cgroup.beginFreeze() }
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
