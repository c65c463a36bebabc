import CLinux
import Glibc
import Linux

/// Moves workers' memory to disk and restores it. All calls must come from one thread, the one that
/// traces; while nothing is traced, another thread may replace it.
///
/// docs/hibernation.md describes the protocol, and what a crash in each step leaves. The protocol
/// has two commit points. *A*: the complete image gets its name, before any page is freed. From
/// there on the memory can be written back from the file at any time, because the worker doesn't
/// run. *B*: the image is unlinked, after all pages are restored and before the worker runs.
public final class Hibernator {
  let features: KernelFeatures
  let lanes: Int
  /// The sessions of workers that rest traced, by worker.
  var tracedSessions: [String: [TraceSession]] = [:]
  /// The processes of these workers whose threads are parked in a scratch area, by worker.
  var parked: [String: [Parking]] = [:]
  /// The descriptors for lazy restores, by worker and process.
  var handles: [String: [ProcessIdentity: FaultHandle]] = [:]
  /// The learned working sets, by worker and process.
  var workingSets: [String: [ProcessIdentity: WorkingSet]] = [:]
  /// The pages that stayed in memory at the last trim, by worker and process.
  var residentSets: [String: [ProcessIdentity: [PageRange]]] = [:]
  /// The resumes with pages that are still missing, by worker.
  var fills: [String: BackgroundFill] = [:]
  /// The base that stays on disk while the worker runs, by worker.
  var bases: [String: Base] = [:]
  /// What is known about writes to the processes, by worker.
  var trackers: [String: [ProcessIdentity: TrackedProcess]] = [:]
  /// The turn of the resume that is under way. It is `nil` if there is none, or its pager has the
  /// turn.
  var turn: ResumeTurns.Turn?
  /// The results of earlier resumes, by worker.
  var histories: [String: ResumeHistory] = [:]
  /// Called at once, on another thread, if missing pages of a worker couldn't be filled. The worker
  /// has been killed then, unless the error leaves it `intact`: it waits for them, and the fill is
  /// tried again until it succeeds.
  public var fillFailed: (@Sendable (String, HibernationError) -> Void)?
  /// Called on another thread when all missing pages of a worker are filled.
  public var fillEnded: (@Sendable (String) -> Void)?
  /// Called on another thread when all memory of a worker that was trimmed by userfaultfd has come
  /// back although nothing asked for it, with its name and the reason as a clause.
  public var trimLost: (@Sendable (String, String) -> Void)?
  /// The mechanisms of a trim, in the order in which they are tried. Tests change them.
  public var trimMechanisms = TrimSummary.Mechanism.allCases
  /// The time, in ms, after which the pager of a quiet worker drops the image's lists. Tests
  /// change it.
  var listsDropAfter: Int32 = 10_000
  /// The process that continues the lazy restores if the daemon dies.
  public var standby: StandbyPagerConnection? {
    didSet {
      // A pager that has handed a worker over is followed by the standby pager, too.
      for (name, fill) in fills where !fill.hasEnded || fill.handedOver != nil {
        fill.announce(to: standby, Array((handles[name] ?? [:]).values))
      }
    }
  }

  /// - Parameters:
  ///   - features: what the kernel and the user's rights permit.
  ///   - lanes: the number of threads that compress and decompress; by default, one for each
  ///     processor.
  public init(features: KernelFeatures = .detect(), lanes: Int? = nil) {
    self.features = features
    self.lanes = lanes ?? onlineProcessors
  }

  /// True if it needs the thread that it has now, which traces workers.
  var isTracing: Bool { !tracedSessions.isEmpty }

  deinit { for session in tracedSessions.values.joined() { session.detach() } }

  /// Hibernates a suspended worker. Of a trimmed one, only what is in memory is written. Call it on
  /// the hibernator's thread: it waits for the disk.
  ///
  /// - Throws: `HibernationError`. Unless its aftermath is `vanished` or `unverifiable`, the worker
  ///   is suspended and unchanged, as before.
  public func hibernate(
    _ request: HibernationRequest
  ) throws(HibernationError) -> HibernationSummary {
    if let summary = try hibernateTrimmed(request) { return summary }
    return try hibernate(request, inheriting: nil)
  }

  /// - Parameter inherited: what is missing, if the worker is trimmed and frozen. Otherwise all of
  ///   its memory comes back first.
  func hibernate(
    _ request: HibernationRequest, inheriting inherited: MissingPages?
  ) throws(HibernationError) -> HibernationSummary {
    let (target, path) = (request.target, request.path)
    if let obstacle = request.obstacle(false) { throw HibernationError(.checking, obstacle) }
    // The working set of the last resume is known when its fill has ended.
    if inherited == nil { try awaitFill(of: target.name) }
    let tree: ProcessTree
    do throws(HibernationError) {
      tree = try attempt(.checking) {
        try target.cgroup?.checkContains(target.root)
        return try target.discover()
      }
    } catch { throw resolved(error, target, image: path) }
    if inherited == nil { try checkReplaceable(path, of: tree) }
    let plan = plan(request, tree)
    let overlays = request.overlay && !request.isSealed
    // The base stays if an image exists, which may need it: then this hibernation was ordered
    // twice.
    if !overlays, !fileExists(path) { dropOverlays(of: target.name, for: path) }
    try checkFeatures()
    do throws(HibernationError) { try check(target, tree) } catch {
      throw resolved(error, target, image: path)
    }
    let seal = request.isSealed ? try newSeal(for: path) : nil
    var operation = Operation(
      request, restore: plan, overlays: overlays, seal: seal, inherited: inherited,
      hibernator: self)
    do throws(HibernationError) {
      try stopUntilIdle(&operation, tree)
      try operation.capture()
    } catch {
      operation.release()
      // The earlier image still counts, and may need its base.
      if inherited != nil { throw resolved(error, target, image: path) }
      bases[target.name]?.image = nil
      // After any failure here, the next hibernation starts without a base, with more room on the
      // disk.
      if error.phase == .capturing || error.phase == .committing {
        dropBase(of: target.name, for: path)
      }
      throw resolved(error, target, image: path)
    }
    // The new image has everything.
    if inherited != nil { fills.removeValue(forKey: target.name)?.missing.end() }
    do throws(HibernationError) {
      try operation.evict()
      var summary = try operation.rest()
      if request.dropsFilePages { summary.filePages = operation.filePages.pageOut() }
      if plan.isLazy, let refusal = summary.lazyRefusal {
        histories[target.name, default: ResumeHistory()].record(refusal: refusal)
      }
      return summary
    } catch {
      let outcome = operation.rollBack(after: error)
      if outcome.aftermath != .unverifiable { dropBase(of: target.name, for: path) }
      throw resolved(outcome, target, image: path)
    }
  }

  private func checkFeatures() throws(HibernationError) {
    guard features.canInject else {
      throw HibernationError(
        .checking, "hibernation is implemented for x86-64 and arm64 only",
        aftermath: .ineligible)
    }
    if let obstacle = features.restoreObstacle {
      throw HibernationError(.checking, obstacle, aftermath: .ineligible)
    }
  }

  /// Chooses the way of resuming from the worker's policy and its history.
  func plan(_ request: HibernationRequest, _ tree: ProcessTree) -> RestorePlan {
    if request.isSealed { return RestorePlan(eager: "its images are encrypted") }
    if request.restore != .eager, let obstacle = features.lazyObstacle {
      return RestorePlan(eager: obstacle)
    }
    let history = histories[request.target.name, default: ResumeHistory()]
    let plan = history.plan(
      request.restore, anonymous: tree.pids.reduce(0) { $0 + anonymousMemory(of: $1) })
    guard plan.isLazy, features.needsUserfaultService, handles[request.target.name] == nil else {
      return plan
    }
    // The service may have to start, which takes longer than the worker should stand still.
    do throws(UserfaultService.Failure) { try UserfaultService.tryOut() } catch {
      return RestorePlan(eager: error.description)
    }
    return plan
  }

  /// Checks what can be seen before the worker is stopped.
  ///
  /// - Parameter tree: its processes. It is suspended, so it has the same ones when it is stopped.
  func check(_ target: HibernationTarget, _ tree: ProcessTree) throws(HibernationError) {
    if target.cgroup?.freezer == nil, let frozen = tree.pids.first(where: ForeignFreeze.holds) {
      throw HibernationError(
        .checking, "another program has frozen its cgroup (process \(frozen))",
        aftermath: .intact)
    }
    try attempt(.checking) {
      Stragglers.shared.release(of: tree.pids, within: .milliseconds(100))
      try Eligibility.check(processes: tree.processes)
      // The maps of a frozen worker are checked when it is stopped; see `Operation.stopAndSeize`.
      if try !target.isFrozen() { try SharedMemoryMaps.check(tree.processes) }
    }
  }

  private func newSeal(for path: String) throws(HibernationError) -> Seal {
    do throws(SealError) { return try Seal.new(for: path) } catch {
      throw HibernationError(.checking, "its image can't be encrypted: \(error)")
    }
  }

  /// Returns an error with the right aftermath. The end of one process isn't the end of a worker
  /// that has others. If the worker has ended, that is the reason for any failure, and its image,
  /// if it has one, is useless.
  func resolved(
    _ error: HibernationError, _ target: HibernationTarget, image: String
  ) -> HibernationError {
    let aftermath: HibernationError.Aftermath
    switch error.aftermath {
    case .vanished: aftermath = target.hasSurvivors() ? .intact : .vanished
    case .intact, .ineligible: aftermath = target.hasLivingProcess ? error.aftermath : .vanished
    case .unverifiable: return error
    }
    if aftermath == .vanished {
      Self.removeUnlessNeeded(image, isUnreadableNeeded: false)
      forget(target.name)
    }
    var error = error
    error.aftermath = aftermath
    return error
  }

  /// Stops and seizes the worker. A worker that was suspended in the middle of a computation gets a
  /// few milliseconds to reach a system call, several times.
  ///
  /// - Parameter tree: its processes.
  private func stopUntilIdle(
    _ operation: inout Operation, _ tree: ProcessTree
  ) throws(HibernationError) {
    for attempt in 1... {
      // After it has run, it may have other processes.
      try operation.stopAndSeize(attempt == 1 ? tree : nil)
      if attempt > 1 { operation.target.waits.didRestAgain() }
      guard let reason = operation.busyReason else {
        // While it ran, it may have given memory to the kernel or a device.
        if attempt > 1 { try Eligibility.checkUse(by: operation.tree.processes) }
        return
      }
      // No pager serves a trimmed worker now.
      guard attempt < 30, operation.inherited == nil else {
        operation.detach()
        var error = HibernationError(.seizing, "busy: \(reason)")
        error.isBusy = true
        throw error
      }
      operation.continueWorker()
      pauseThread(for: .milliseconds(5))
    }
  }

  /// Drops workers that rest traced and have ended. Call it after SIGCHLD: the end of a traced
  /// process isn't reported to its parent before its tracer has waited for it.
  public func reapChildren() {
    for (name, sessions) in tracedSessions where !sessions.contains(where: { $0.isAlive() }) {
      for session in sessions { session.detach() }
      tracedSessions[name] = nil
      parked[name] = nil
    }
  }

  /// Drops what is known about processes of a worker that have ended: the descriptors of each would
  /// stay open.
  func keepOnly(_ alive: Set<ProcessIdentity>, of name: String) {
    trackers[name] = trackers[name]?.filter { alive.contains($0.key) }
    handles[name] = handles[name]?.filter { alive.contains($0.key) }
    workingSets[name] = workingSets[name]?.filter { alive.contains($0.key) }
    residentSets[name] = residentSets[name]?.filter { alive.contains($0.key) }
  }

  /// Drops all state of a worker that is being killed.
  public func forget(_ name: String) {
    // The fill ends at once: the worker has no memory any more.
    if let fill = fills.removeValue(forKey: name) { acceptBase(of: fill, fill.wait(), name) }
    handles[name] = nil
    workingSets[name] = nil
    residentSets[name] = nil
    endTracking(of: name)
    if let base = bases.removeValue(forKey: name) { discardFile(base.file.path) }
    histories[name] = nil
    parked[name] = nil
    for session in tracedSessions.removeValue(forKey: name) ?? [] { session.detach() }
  }
}

/// Runs `body`, and adds the phase to any error of it.
func attempt<Value>(
  _ phase: HibernationError.Phase, _ body: () throws -> Value
) throws(HibernationError) -> Value {
  do { return try body() } catch { throw .from(error, in: phase) }
}
