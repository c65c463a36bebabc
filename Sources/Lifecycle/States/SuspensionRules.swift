import Policy

// The transitions background → suspending → suspended.

extension Engine {
  mutating func advanceBackground(_ index: Int) {
    if checkAnswer(index) { return }
    expireTasks(index)
    switch workers[index].goal?.destination {
    case .foreground?: enterForeground(index, workers[index].goal?.cause ?? .active)
    case .background?: fulfillGoal(index)
    case .stopped?, .terminated?:
      beginEnding(index, workers[index].goal?.cause ?? .active, gracefully: true)
    case .suspended?, .hibernated?, nil: considerSuspension(index)
    }
  }

  /// Suspends the worker if nothing prevents it. A request skips the grace, but neither the shed
  /// request nor open tasks: a frozen worker can't free memory or finish anything.
  private mutating func considerSuspension(_ index: Int) {
    guard workers[index].suspensionObstacle(at: now) == nil else {
      // The result of the lock check is outdated when the obstacle ends. It is cleared only if
      // there is one: a worker that is changed is examined again.
      if workers[index].run.lockWatch != nil { workers[index].run.lockWatch = nil }
      return
    }
    if workers[index].goal == nil, isShadow(index) {
      guard workers[index].shadow.depth == nil else { return imagineHibernation(index) }
      guard !workers[index].notes.contains(.suspension) else { return }
      countImagined(index, .suspended)
      let time = (now - workers[index].since).text
      reportOnce(
        index, step: .suspension, text: "been suspended: in the background for \(time)")
      return
    }
    guard isAtSafePoint(index) else { return }
    let worker = workers[index]
    let grace = Cause.graceOver(
      now - worker.graceBegan, isIdle: worker.policy.foreground.mode == .activity)
    let limit = worker.excess(.hibernate, at: now).map { Cause.footprint($0) }
    suspend(index, worker.goal?.cause ?? worker.causeToSleepAgain ?? limit ?? grace)
  }

  private mutating func suspend(_ index: Int, _ cause: Cause) {
    move(index, to: .suspending, cause)
    emit(.suspend(workers[index].id))
  }

  mutating func recordSuspended(_ index: Int) {
    guard workers[index].state == .suspending else { return }
    workers[index].run.suspendedSince = now
    // Neither a heartbeat nor the worker's own timer ends its sleep.
    if workers[index].run.beatUntil != nil {
      workers[index].run.beatUntil = nil
      workers[index].run.lastBeat = now
    } else if workers[index].run.tick == nil {
      workers[index].run.restingSince = now
      workers[index].run.lastBeat = nil
    }
    workers[index].run.tick = nil
    recordPutToSleep(index, workers[index].cause)
    workers[index].run.isMeasuredAsleep = false
    workers[index].run.retrySuspensionAt = nil
    workers[index].run.failedSuspensions = nil
    workers[index].run.staysAwake = nil
    move(index, to: .suspended, workers[index].cause)
    emit(.measure(workers[index].id))
  }

  mutating func recordSuspendFailed(_ index: Int, _ reason: String) {
    guard workers[index].state == .suspending else { return }
    let failures = (workers[index].run.failedSuspensions ?? 0) + 1
    workers[index].run.failedSuspensions = failures
    workers[index].run.staysAwake = nil
    recordAwake(index, reason, pause: workers[index].suspensionPause(after: failures))
    if let goal = workers[index].goal,
      goal.destination == .suspended || goal.destination == .hibernated
    {
      failGoal(index, "\(workers[index].id) could not be suspended: \(reason)")
    }
  }
}

extension Engine {
  /// The next attempt is after a long time, whatever uses the worker until then: its timers will
  /// hardly change, and each attempt makes it stand still. A goal isn't for idleness, so it stays.
  mutating func recordStaysAwake(_ index: Int, _ reason: String) {
    guard workers[index].state == .suspending else { return }
    workers[index].run.staysAwake = reason
    // It isn't one any more that only its timer has woken: otherwise it would be suspended for
    // idleness although it is over its limit, and refused, again and again.
    workers[index].run.tick = nil
    workers[index].run.failedSuspensions = nil
    recordAwake(index, reason, pause: workers[index].longestSuspensionPause)
  }

  private mutating func recordAwake(_ index: Int, _ reason: String, pause: Duration) {
    workers[index].run.retrySuspensionAt = now + pause
    // The worker never slept, so there is nothing to wake it from.
    workers[index].run.wakeNeeded = nil
    move(index, to: .background, .failed(reason))
  }
}

extension WorkerRecord {
  /// The delay after a failed suspension: the grace, doubled with each further failure, at most ten
  /// minutes or the grace. Some workers always wait in a call that a stop would cut short.
  fileprivate func suspensionPause(after failures: Int) -> Duration {
    let grace = max(policy.background.suspendAfter ?? .zero, .seconds(1))
    return min(grace * (1 << min(failures - 1, 10)), longestSuspensionPause)
  }

  fileprivate var longestSuspensionPause: Duration {
    max(policy.background.suspendAfter ?? .zero, .seconds(600))
  }

  /// When the policy may try again to suspend the worker. `nil`: no failure delays the next
  /// attempt, because there was none, the worker was used since, or its policy no longer trims it.
  var suspensionRetryAt: Instant? {
    if run.staysAwake != nil { return isTrimmedByPolicy ? run.retrySuspensionAt : nil }
    guard case .failed = cause else { return nil }
    return run.retrySuspensionAt
  }

  /// When the policy alone would suspend the worker. `nil`: never, or not in this state.
  var graceOver: Instant? {
    guard state == .background else { return nil }
    let retryAt = suspensionRetryAt ?? since
    if let until = sleepsAgainAt { return max(until, retryAt) }
    return suspendAfter.map { max(graceBegan + $0, retryAt) }
  }

  /// When a worker over `limits.footprint.hibernate` is suspended, although its grace isn't over:
  /// after a moment without use. `nil`: it isn't over the limit.
  func quietForLimit(_ grace: Duration) -> Instant? {
    guard run.limits?.since(.hibernate) != nil else { return nil }
    return max(since, run.lastActivity ?? since) + min(grace, TimerTick.quiet)
  }

  /// The end of a heartbeat, or of the work for the worker's own timer. The policy's grace doesn't
  /// count, because the worker was asleep before.
  var sleepsAgainAt: Instant? { run.beatUntil ?? run.tick?.isOver }

  /// When the grace began. In shadow mode an imagined wake begins it again.
  var graceBegan: Instant { max(since, shadow.wokenAt ?? since) }

  fileprivate var causeToSleepAgain: Cause? {
    if run.beatUntil != nil { return .heartbeat }
    return run.tick == nil ? nil : .quietAgain
  }
}
