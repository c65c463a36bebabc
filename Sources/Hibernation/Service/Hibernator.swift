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
  /// By worker and process: what lazy restores need, and what they have taught us.
  var handles: [String: [ProcessIdentity: FaultHandle]] = [:]
  var workingSets: [String: [ProcessIdentity: PagePlan.WorkingSet]] = [:]
  /// Resumes of which pages are still missing, by worker.
  var fills: [String: BackgroundFill] = [:]
  /// By worker: what stays on disk while it runs, and what is known of its writes.
  var bases: [String: Base] = [:]
  var trackers: [String: [ProcessIdentity: TrackedProcess]] = [:]
  /// How resumes went, by worker.
  var histories: [String: ResumeHistory] = [:]
  /// What a later daemon needs where it may not open it itself.
  let kept: KeptMemories
  /// Told at once, on another thread, when missing pages couldn't be brought. The worker has been
  /// killed then.
  public var fillFailed: (@Sendable (String, HibernationError) -> Void)?
  /// Called on another thread when all missing pages of a worker are there.
  public var fillEnded: (@Sendable (String) -> Void)?
  /// Goes on with them if we die.
  public var standby: Standby?

  public convenience init(features: KernelFeatures = .detect(), lanes: Int? = nil) {
    self.init(features: features, lanes: lanes, kept: KeptMemories())
  }

  /// - Parameter kept: shared by the hibernators of one service.
  init(features: KernelFeatures, lanes: Int?, kept: KeptMemories) {
    self.kept = kept
    self.features = features
    self.lanes = lanes ?? onlineProcessors
  }

  deinit { for session in resting.values.joined() { session.detach() } }

  /// Hibernates a suspended worker.
  ///
  /// - Throws: `HibernationError`. Unless its aftermath is `vanished` or `unverifiable`, the worker is
  ///   suspended and unchanged, as before.
  public func hibernate(
    _ request: HibernationRequest
  ) throws(HibernationError) -> HibernationSummary {
    let (target, path) = (request.target, request.path)
    // What the last resume has taught is known when it has ended.
    try awaitFill(of: target.name)
    let plan = plan(request)
    let overlays = request.overlay && !plan.isLazy && !request.isSealed
    // Not under an image, which may lie over it: something has ordered this twice.
    if !overlays, !fileExists(path) { dropOverlays(of: target.name, for: path) }
    guard features.canInject else {
      throw HibernationError(
        .checking, "hibernation isn't implemented for this processor architecture yet",
        aftermath: .ineligible)
    }
    let found: ProcessTree
    do throws(HibernationError) { found = try check(target) } catch {
      throw judge(error, target, image: path)
    }
    let seal = request.isSealed ? try newSeal(for: path) : nil
    var operation = Operation(
      request, restore: plan, overlays: overlays, seal: seal, hibernator: self)
    do throws(HibernationError) {
      try stopUntilIdle(&operation, found)
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
      if request.dropsFilePages { summary.filePages = operation.filePages.pushOut() }
      if let refusal = summary.lazyRefusal {
        histories[target.name, default: ResumeHistory()].record(refusal: refusal)
      }
      return summary
    } catch {
      let outcome = operation.rollBack(after: error)
      if outcome.aftermath != .unverifiable { dropBase(of: target.name, for: path) }
      throw judge(outcome, target, image: path)
    }
  }

  /// The way of resuming that the worker's policy wants, and its history speaks for.
  private func plan(_ request: HibernationRequest) -> RestorePlan {
    if request.isSealed { return RestorePlan(eager: "its images are encrypted") }
    if kept.isNeeded {
      return RestorePlan(
        eager: "a later daemon can't continue a lazy restore (kernel.yama.ptrace_scope)")
    }
    return histories[request.target.name, default: ResumeHistory()].plan(request.restore)
  }

  /// What can be seen before it is stopped. Its processes: it is suspended, so it has the same ones when it is
  /// stopped.
  private func check(_ target: HibernationTarget) throws(HibernationError) -> ProcessTree {
    if let obstacle = kept.obstacle(target) { throw obstacle }
    return try attempt(.checking) {
      let tree = try target.discover()
      Stragglers.shared.release(of: tree.pids, within: .milliseconds(100))
      try Eligibility.check(processes: tree.processes)
      // Those of a frozen one: when it could be stopped; see `Operation.stopAndSeize`.
      if try !target.isFrozen() { try SharedMemoryMaps.check(tree.processes) }
      return tree
    }
  }

  private func newSeal(for path: String) throws(HibernationError) -> Seal {
    do throws(SealError) { return try Seal.new(for: path) } catch {
      throw HibernationError(.checking, "its image can't be encrypted: \(error)")
    }
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
      discardFile(image)
      dropBase(of: target.name, for: image)
      forget(target.name)
    }
    return HibernationError(error.phase, error.reason, aftermath: aftermath)
  }

  /// Stops and seizes. A worker that was suspended in the middle of a computation gets a few
  /// milliseconds to come to a system call, some times.
  ///
  /// - Parameter found: its processes.
  private func stopUntilIdle(
    _ operation: inout Operation, _ found: ProcessTree
  ) throws(HibernationError) {
    for attempt in 1... {
      // When it has run, it may have other ones.
      try operation.stopAndSeize(attempt == 1 ? found : nil)
      if attempt > 1 { operation.target.waits.restsAnew() }
      if operation.isIdle { return }
      guard attempt < 10 else {
        operation.detach()
        throw HibernationError(.seizing, "busy: one of its processes never waits in a system call")
      }
      operation.letRun()
      pauseThread(for: .milliseconds(5))
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
    _ = fills.removeValue(forKey: name)?.wait()
    kept.drop(name)
    handles[name] = nil
    workingSets[name] = nil
    trackers[name] = nil
    if let base = bases.removeValue(forKey: name) { discardFile(base.path) }
    histories[name] = nil
    parked[name] = nil
    for session in resting.removeValue(forKey: name) ?? [] { session.detach() }
  }
}

/// Names the phase of whatever goes wrong in `body`.
func attempt<Value>(
  _ phase: HibernationError.Phase, _ body: () throws -> Value
) throws(HibernationError) -> Value {
  do { return try body() } catch { throw .from(error, in: phase) }
}
