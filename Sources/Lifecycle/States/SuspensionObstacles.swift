import Policy

/// Why a worker in the background isn't suspended now.
enum SuspensionObstacle: Hashable, Sendable {
  case shedding
  /// Memory of the worker is being moved out of RAM or back.
  case trimming
  case task(String, left: Duration)
  case held(left: Duration)
  case failedLately(String, retryIn: Duration)
  /// It works by its own timers, and its policy trims it.
  case staysAwake(String, retryIn: Duration)
  /// `background.suspend_after` is `never`.
  case never
  case grace(Duration, of: Duration, raised: IdleBackOff?)
  /// The worker is over `limits.footprint.hibernate`, and was used a moment ago.
  case notQuiet(left: Duration)
  case heartbeat(left: Duration)
  /// The worker's own timer woke it, and it isn't idle yet.
  case timer(left: Duration)
  case launchedLately(Duration, of: Duration)
  case wokenLately(Duration, of: Duration)
  case fileLocks(Int, left: Duration)
}

extension WorkerRecord {
  /// The first obstacle, which is the one that decides. The cause of the suspension decides which
  /// rules count: a request skips the grace, but neither the shed request nor unfinished work.
  func suspensionObstacle(at now: Instant) -> SuspensionObstacle? {
    let unfinished =
      shedObstacle ?? trimObstacle ?? taskObstacle(at: now) ?? holdObstacle(at: now)
    if unfinished != nil || goal != nil { return unfinished }
    return retryObstacle(at: now) ?? graceObstacle(at: now) ?? uptimeObstacle(at: now)
  }

  /// All obstacles, including those that are checked only when nothing else prevents the
  /// suspension.
  func suspensionObstacles(at now: Instant) -> [SuspensionObstacle] {
    var obstacles = [
      shedObstacle, trimObstacle, taskObstacle(at: now), holdObstacle(at: now),
    ]
    if goal == nil {
      obstacles += [retryObstacle(at: now), graceObstacle(at: now), uptimeObstacle(at: now)]
    }
    return (obstacles + [lockObstacle(at: now)]).compactMap { $0 }
  }

  // MARK: unfinished work

  func hasUnfinishedWork(at now: Instant) -> Bool {
    (taskObstacle(at: now) ?? holdObstacle(at: now)) != nil
  }

  private var shedObstacle: SuspensionObstacle? { isShedding ? .shedding : nil }

  private var trimObstacle: SuspensionObstacle? {
    run.trim?.isPending == true ? .trimming : nil
  }

  private func taskObstacle(at now: Instant) -> SuspensionObstacle? {
    run.tasks.first.map { .task($0.name, left: max(.zero, end(of: $0) - now)) }
  }

  private func holdObstacle(at now: Instant) -> SuspensionObstacle? {
    guard let until = heldUntil, now < until else { return nil }
    return .held(left: until - now)
  }

  // MARK: obstacles for the policy alone

  private func retryObstacle(at now: Instant) -> SuspensionObstacle? {
    guard let retryAt = suspensionRetryAt, now < retryAt else { return nil }
    if let reason = run.staysAwake {
      // A worker over its limit isn't suspended for idleness, so its timers don't count.
      if excess(.hibernate, at: now) != nil { return nil }
      return .staysAwake(reason, retryIn: retryAt - now)
    }
    guard case .failed(let reason) = cause else { return nil }
    return .failedLately(reason, retryIn: retryAt - now)
  }

  private func graceObstacle(at now: Instant) -> SuspensionObstacle? {
    if let until = run.beatUntil { return now < until ? .heartbeat(left: until - now) : nil }
    if let tick = run.tick { return now < tick.isOver ? .timer(left: tick.isOver - now) : nil }
    guard let grace = suspendAfter else { return .never }
    if let quietAt = quietForLimit(grace), excess(.hibernate, at: now) != nil {
      return now < quietAt ? .notQuiet(left: quietAt - now) : nil
    }
    let spent = now - graceBegan
    guard spent < grace else { return nil }
    return .grace(spent, of: grace, raised: idleBackOff(from: since))
  }

  private func uptimeObstacle(at now: Instant) -> SuspensionObstacle? {
    guard sleepsAgainAt == nil, now < uptimeOver else { return nil }
    let rules = policy.background.safePoint
    let up = now - run.runningSince
    return run.hasWoken
      ? .wokenLately(up, of: rules.afterWake) : .launchedLately(up, of: rules.afterLaunch)
  }

  private func lockObstacle(at now: Instant) -> SuspensionObstacle? {
    guard let watch = run.lockWatch, watch.held > 0 else { return nil }
    let until = watch.began + policy.background.safePoint.fileLocks
    return now < until ? .fileLocks(watch.held, left: until - now) : nil
  }
}
