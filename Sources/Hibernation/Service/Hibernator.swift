import CLinux
import Glibc
import Linux

/// Puts workers' memory to disk and brings it back. All calls come from one thread, the one that
/// traces.
///
/// The protocol, with what a crash in each step leaves, is in docs/hibernation.md. Its two commit
/// points: *A*, the complete image gets its name, before any page is freed; from there on the
/// memory can be written back from the file at any time, because the worker doesn't run. *B*, the
/// image is unlinked, after all pages are back and before the worker runs.
public final class Hibernator {
  let features: KernelFeatures
  let lanes: Int
  /// Sessions of workers that rest traced, by worker.
  var resting: [String: [TraceSession]] = [:]
  /// Those of them whose threads wait in a scratch area.
  var parked: [String: [Parking]] = [:]
  /// By worker and process: what resumes with missing pages need, and what they have taught us.
  var handles: [String: [ProcessIdentity: FaultHandle]] = [:]
  var hot: [String: [ProcessIdentity: PagePlan.WorkingSet]] = [:]
  /// Resumes of which pages are still missing, by worker.
  var streams: [String: PageStream] = [:]
  /// By worker: what stays on disk while it runs, and what is known of its writes.
  var bases: [String: Base] = [:]
  var trackers: [String: [ProcessIdentity: TrackedProcess]] = [:]
  /// By worker: the image that holds its memory, from commit A to commit B.
  var marks: [String: ImageMark] = [:]
  /// How resumes went, and how the next one is to be, by worker.
  var histories: [String: ResumeHistory] = [:]
  var plans: [String: ResumePlan] = [:]
  /// What a later daemon needs where it may not open it itself.
  let kept: KeptMemories
  /// Told at once, on another thread, when missing pages couldn't be brought. The worker has been
  /// killed then.
  public var streamFailed: (@Sendable (String, HibernationError) -> Void)?
  /// Called on another thread when all missing pages of a worker are there.
  public var streamEnded: (@Sendable (String) -> Void)?
  /// Goes on with them if we die.
  public var standby: Standby?

  public convenience init(features: KernelFeatures = .detect(), lanes: Int? = nil) {
    self.init(features: features, lanes: lanes, kept: KeptMemories())
  }

  /// - Parameter kept: shared by the hibernators of one service.
  init(features: KernelFeatures, lanes: Int?, kept: KeptMemories) {
    self.kept = kept
    self.features = features
    self.lanes = lanes ?? max(1, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))))
  }

  deinit { for session in resting.values.joined() { session.detach() } }

  /// Hibernates a suspended worker (frozen or stopped).
  ///
  /// - Parameters:
  ///   - path: where the image goes; its directory exists.
  ///   - level: zstd's, −7…19.
  ///   - lazyReady: prepares for `RestoreMode.lazy`. Why it can't be, the summary says.
  ///   - overlay: writes only what has changed, where an earlier resume has kept a base, and prepares
  ///     for that next time. Not together with `lazyReady` (a
  ///     mapping has one userfaultfd) or `sealed`.
  ///   - sealed: encrypts the image (`Seal`). Without a key it isn't written at all.
  ///   - dropsFilePages: pushes out clean pages of files, too, which nobody else has in use.
  ///   - storage: how the image is kept.
  /// - Throws: `HibernationError`. Unless its aftermath is `vanished` or `unverifiable`, the worker is
  ///   suspended and unchanged, as before.
  public func hibernate(
    _ target: HibernationTarget, to path: String, level: Int32 = 1, lazyReady: Bool = false,
    overlay: Bool = false, sealed: Bool = false, dropsFilePages: Bool = false,
    storage: ImageStorage = ImageStorage()
  ) throws(HibernationError) -> HibernationSummary {
    try settle(target.name)
    let overlay = overlay && !lazyReady && !sealed
    // Not under an image, which may lie over it: somebody has ordered this twice.
    if !overlay, access(path, F_OK) != 0 { dropOverlays(of: target.name, for: path) }
    guard features.canInject else {
      throw HibernationError(
        .checking, "hibernation isn't implemented for this processor architecture yet",
        .ineligible)
    }
    do throws(HibernationError) {
      if let obstacle = kept.obstacle(target) { throw obstacle }
      try attempt(.checking) {
        let processes = try target.discover().processes
        Stragglers.shared.release(of: processes.map(\.pid), within: .milliseconds(100))
        try Eligibility.check(processes: processes)
        // Those of a frozen one: when it could be stopped; see `Operation.stopAndSeize`.
        if try !target.isFrozen() { try SharedMemoryMaps.check(processes) }
      }
    } catch { throw judge(error, target, image: path) }
    let seal = sealed ? try newSeal(for: path) : nil
    var operation = Operation(
      target: target, path: path, level: level, lazyReady: lazyReady, overlay: overlay,
      seal: seal, storage: storage, hibernator: self)
    do throws(HibernationError) {
      try stopUntilIdle(&operation)
      try operation.capture()
    } catch {
      operation.release()
      kept.drop(target.name)
      bases[target.name]?.image = nil
      // Whatever it was: the next one begins anew, with more room on the disk.
      if error.phase == .capturing || error.phase == .committing {
        dropBase(of: target.name, for: path)
      }
      throw judge(error, target, image: path)
    }
    do throws(HibernationError) {
      try operation.evict()
      var summary = try operation.rest()
      if dropsFilePages { summary.filePages = operation.filePages.pushOut() }
      return summary
    } catch {
      let outcome = operation.rollBack(after: error)
      if outcome.aftermath != .unverifiable { dropBase(of: target.name, for: path) }
      throw judge(outcome, target, image: path)
    }
  }

  private func newSeal(for path: String) throws(HibernationError) -> Seal {
    do throws(SealError) { return try Seal.new(for: path) } catch {
      throw HibernationError(.checking, "its image can't be encrypted: \(error)")
    }
  }

  /// The same, laid out for the way of resuming that the worker's policy wants, and its history
  /// speaks for. `RestoreMode.planned` follows it.
  public func hibernate(
    _ target: HibernationTarget, to path: String, level: Int32, resume: ResumePreference,
    overlay: Bool = false, sealed: Bool = false, dropsFilePages: Bool = false,
    storage: ImageStorage = ImageStorage()
  ) throws(HibernationError) -> HibernationSummary {
    // What the last resume has taught is known when it has ended.
    try settle(target.name)
    let plan =
      sealed
      ? ResumePlan(eager: "its images are encrypted")
      : kept.isNeeded
        ? ResumePlan(eager: "a later daemon couldn't go on with it (kernel.yama.ptrace_scope)")
        : histories[target.name, default: ResumeHistory()].plan(resume)
    var summary = try hibernate(
      target, to: path, level: level, lazyReady: plan.isLazy, overlay: overlay, sealed: sealed,
      dropsFilePages: dropsFilePages, storage: storage)
    if let refusal = summary.lazyRefusal {
      histories[target.name, default: ResumeHistory()].note(refusal: refusal)
    }
    summary.resumePlan = summary.lazyRefusal.map { ResumePlan(eager: $0) } ?? plan
    plans[target.name] = summary.resumePlan
    return summary
  }

  /// The end of one process isn't the end of a worker that has others; and whatever fails on a
  /// worker that has ended fails for that. Its image, if there is one, is of use to nobody.
  func judge(
    _ error: HibernationError, _ target: HibernationTarget, image: String
  ) -> HibernationError {
    let aftermath: HibernationError.Aftermath
    switch error.aftermath {
    case .vanished: aftermath = target.hasSurvivors() ? .intact : .vanished
    case .intact, .ineligible: aftermath = target.hasAnybody ? error.aftermath : .vanished
    case .unverifiable: return error
    }
    if aftermath == .vanished {
      unlink(image)
      dropBase(of: target.name, for: image)
      forget(target.name)
    }
    return HibernationError(error.phase, error.reason, aftermath)
  }

  /// Stops and seizes. A worker that was suspended in the middle of a computation gets a few
  /// milliseconds to come to a system call, some times.
  private func stopUntilIdle(_ operation: inout Operation) throws(HibernationError) {
    for attempt in 1... {
      try operation.stopAndSeize()
      if attempt > 1 { operation.target.waits.restsAnew() }
      if operation.isIdle { return }
      guard attempt < 10 else {
        operation.detach()
        throw HibernationError(.seizing, "it is busy: a process of it never waits for anything")
      }
      operation.letRun()
      var pause = timespec(tv_sec: 0, tv_nsec: 5_000_000)
      nanosleep(&pause, nil)
    }
  }

  /// Looks whether workers that rest traced are still there. To be called after SIGCHLD: the end of
  /// a traced process isn't reported to anybody before its tracer has looked.
  public func reapChildren() {
    for (name, sessions) in resting where !sessions.contains(where: { $0.isAlive() }) {
      for session in sessions { session.detach() }
      resting[name] = nil
      parked[name] = nil
    }
  }

  /// Gives up on a worker that is being killed.
  public func forget(_ name: String) {
    // It ends at once: there is no memory to fill any more.
    _ = streams.removeValue(forKey: name)?.wait()
    kept.drop(name)
    handles[name] = nil
    hot[name] = nil
    trackers[name] = nil
    if let base = bases.removeValue(forKey: name) { unlink(base.path) }
    histories[name] = nil
    plans[name] = nil
    parked[name] = nil
    marks[name] = nil
    for session in resting.removeValue(forKey: name) ?? [] { session.detach() }
  }
}

/// How an image is kept.
public struct ImageStorage: Sendable {
  public var durability: ImageDurability
  /// Memory is short: what is on the disk needn't be in the page cache too.
  public var dropsCache: Bool

  public init(durability: ImageDurability = .synced, dropsCache: Bool = false) {
    self.durability = durability
    self.dropsCache = dropsCache
  }
}

/// What a hibernation did. Sizes in bytes.
public struct HibernationSummary: Sendable {
  /// Of the image; a later daemon needs it to tell that image from others.
  public var mark: ImageMark?
  /// Private pages that left memory.
  public var moved: UInt64
  public var imageLength: UInt64
  /// What of that was written now; the rest is its base.
  public var written: UInt64
  /// Pages that were found unchanged in the base.
  public var unchanged: UInt64 = 0
  /// Pages that had to be compared for that, because nothing was known of writes to them.
  public var compared: UInt64 = 0
  /// Why writes aren't tracked although that was asked for.
  public var trackingRefusal: String?
  public var processes: Int
  /// Why it can't be resumed with missing pages although that was asked for.
  public var lazyRefusal: String?
  /// `nil`: not asked for.
  public var filePages: FilePages.Outcome?
  /// How it will be resumed, and why; `nil` where nobody asked.
  public var resumePlan: ResumePlan?
  public var duration: Duration
}

/// Names the phase of whatever goes wrong in `body`.
func attempt<Value>(
  _ phase: HibernationError.Phase, _ body: () throws -> Value
) throws(HibernationError) -> Value {
  do { return try body() } catch { throw .from(error, in: phase) }
}
