import Policy

// `limits.footprint`: a worker whose measured footprint stays over a limit is asked to free memory,
// hibernated or restarted. Because the footprint counts, no memory controller is needed.

extension FootprintLimits {
  /// How long a restart may wait for the worker to be unused. Then a worker that is always in use
  /// is restarted anyway.
  public static let longestWait = Duration.seconds(300)
}

extension WorkerRecord {
  /// Updates since when each limit is exceeded. Called when the footprint or the limits have
  /// changed.
  mutating func updateFootprintWatch(at now: Instant) {
    guard let limits = profile.footprintLimits, profile.leader == nil else {
      if run.limits != nil { run.limits = nil }
      return
    }
    guard let footprint = run.footprint else { return }
    var watch = run.limits ?? FootprintWatch()
    watch.measured(footprint, limits, at: now)
    if watch != run.limits { run.limits = watch }
  }

  /// When the footprint will have been over a limit for long enough. Time asleep doesn't count,
  /// because a sleeping worker doesn't grow. It counts for hibernating a suspended worker.
  func limitDueAt(_ step: FootprintLimits.Step) -> Instant? {
    guard let since = run.limits?.since(step), let limits = profile.footprintLimits else {
      return nil
    }
    switch state {
    case .foreground, .background: return max(since, run.runningSince) + limits.sustainedFor
    case .suspending, .suspended: return step == .hibernate ? since + limits.sustainedFor : nil
    default: return nil
    }
  }

  func excess(_ step: FootprintLimits.Step, at now: Instant) -> FootprintExcess? {
    guard let due = limitDueAt(step), now >= due, let limits = profile.footprintLimits,
      let limit = limits[step]
    else { return nil }
    return FootprintExcess(
      step: step, footprint: footprint, limit: limit, lasted: now - due + limits.sustainedFor)
  }

  /// From when on the worker shows no sign of use. `nil`: its state or its unfinished work says
  /// that it is in use.
  var unusedFrom: Instant? {
    guard state == .background, goal == nil, !isShedding, run.tasks.isEmpty else { return nil }
    let quiet = max(since, run.lastActivity ?? since) + TimerTick.quiet
    return max(quiet, heldUntil ?? quiet)
  }

  /// When it may be restarted for its footprint, if it is unused then.
  private var restartIsDue: Instant? {
    guard profile.mayBeTerminated, let due = limitDueAt(.restart) else { return nil }
    return max(due, footprintRestarts?.notBefore ?? due)
  }

  func mayRestart(at now: Instant) -> Bool {
    guard let due = restartIsDue, now >= due else { return false }
    if now >= due + FootprintLimits.longestWait { return true }
    return unusedFrom.map { now >= $0 } ?? false
  }

  func considerLimits(_ next: inout EarliestDeadline) {
    guard run.limits != nil else { return }
    for step in FootprintLimits.Step.allCases { next.consider(limitDueAt(step)) }
    if let due = restartIsDue {
      next.consider(due)
      next.consider(due + FootprintLimits.longestWait)
    }
    next.consider(unusedFrom)
    if state == .background { next.consider(suspendAfter.flatMap { quietForLimit($0) }) }
  }
}

extension Engine {
  mutating func advanceFootprintLimits(_ index: Int) {
    guard workers[index].run.limits != nil else { return }
    let state = workers[index].state
    guard state == .foreground || state == .background else { return }
    for step in FootprintLimits.Step.allCases {
      guard let excess = workers[index].excess(step, at: now),
        workers[index].run.limits?.hasReported(step) == false
      else { continue }
      workers[index].run.limits?.report(step)
      reachLimit(index, excess)
    }
    guard workers[index].mayRestart(at: now), !isShadow(index),
      workers[index].goal?.destination.isEnd != true,
      let excess = workers[index].excess(.restart, at: now)
    else { return }
    restartForFootprint(index, excess)
  }

  private mutating func reachLimit(_ index: Int, _ excess: FootprintExcess) {
    let worker = workers[index]
    guard !isShadow(index) else {
      return reportImagined(index, "been \(excess.step.inShadowMode): \(excess.sentence)")
    }
    let consequence: String
    switch excess.step {
    case .warn where worker.profile.canShed:
      if worker.run.shed?.kind != .memoryWarning { workers[index].run.owesWarning = true }
      consequence = "asked to free memory"
    case .warn: consequence = "it can't be asked to free memory: configure `shed:`"
    case .hibernate: consequence = "hibernated as soon as it isn't in use"
    case .restart where !worker.profile.mayBeTerminated:
      consequence = "not restarted: another program supervises it"
    case .restart:
      let wait = FootprintLimits.longestWait.text
      consequence = "restarted as soon as it isn't in use, after \(wait) at the latest"
    }
    emit(.overLimit(worker.id, excess, consequence))
  }

  /// Terminates the worker gracefully. The daemon launches it again.
  private mutating func restartForFootprint(_ index: Int, _ excess: FootprintExcess) {
    let run = workers[index].run
    let start = run.hasWoken ? run.launchAskedAt : run.runningSince
    let began = now < start + FootprintRestarts.startUp + excess.lasted
    var restarts = workers[index].footprintRestarts ?? FootprintRestarts(excess: excess)
    restarts.count += 1
    restarts.last = now
    restarts.excess = excess
    restarts.streak = began ? restarts.streak + 1 : 0
    restarts.isUnderWay = true
    workers[index].footprintRestarts = restarts
    beginEnding(index, .footprint(excess), gracefully: true)
  }

  /// The cause of a launch that follows a restart for the footprint. `nil`: the launch has another
  /// cause.
  mutating func consumeFootprintRestart(_ index: Int, _ verb: Request.Verb) -> Cause? {
    guard let restarts = workers[index].footprintRestarts, restarts.isUnderWay else { return nil }
    workers[index].footprintRestarts?.isUnderWay = false
    return verb == .restart ? .restartedForFootprint(restarts.excess) : nil
  }
}

extension Engine {
  /// What would move a running worker because of its footprint.
  func limitMoves(_ worker: WorkerRecord, at now: Instant) -> [Move] {
    guard let limits = worker.profile.footprintLimits, worker.profile.leader == nil,
      !isShadow(worker)
    else { return [] }
    return FootprintLimits.Step.allCases.compactMap { step in
      guard let limit = limits[step], step != .warn,
        step != .restart || worker.profile.mayBeTerminated
      else { return nil }
      let due = worker.limitDueAt(step)
      let text =
        due == nil
        ? "its footprint is over \(step.path), \(limit), for \(limits.sustainedFor.text)"
        : "its footprint of \(worker.footprint) is over \(step.path), \(limit); when it isn't in "
          + "use"
      return Move(
        to: step == .restart ? .terminating : .suspended, code: "footprint_limit", sentence: text,
        after: due.map { $0 - now }, key: step.path)
    }
  }
}

extension FootprintLimits.Step {
  fileprivate var inShadowMode: String {
    switch self {
    case .warn: "asked to free memory"
    case .hibernate: "hibernated as soon as it wasn't in use"
    case .restart: "restarted"
    }
  }
}
