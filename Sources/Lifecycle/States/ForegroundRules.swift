import Policy

// The transitions foreground ⇄ background.

extension Engine {
  mutating func enterForeground(_ index: Int, _ cause: Cause) {
    if workers[index].state == .background { workers[index].uses.began(at: now) }
    // A start counts from the time of its request, however long it took.
    if workers[index].state != .launching || workers[index].goal != nil {
      workers[index].frontAsked = now
    }
    move(index, to: .foreground, cause)
    workers[index].lastUsed = now
    workers[index].run.beatUntil = nil
    workers[index].run.tick = nil
    workers[index].run.returnsToFront = nil
    imagineWake(index)
    workers[index].run.owesBackgroundShed = false
    displaceSurplus(by: index)
  }

  /// Moves workers to the background until the foreground is within its limit. The one whose
  /// request for the foreground is oldest leaves first.
  private mutating func displaceSurplus(by newcomer: Int) {
    guard let limit = policy.foreground.max else { return }
    refresh()
    var others = workers.indices(.foreground).filter { $0 != newcomer }
    others.sort { foregroundRank($0) < foregroundRank($1) }
    for index in others.prefix(max(0, others.count - max(0, limit - 1))) {
      enterBackground(index, .displaced(by: workers[newcomer].id))
    }
  }

  private func foregroundRank(_ index: Int) -> (Instant, Instant, WorkerID) {
    let worker = workers[index]
    return (worker.frontAsked ?? .zero, worker.since, worker.id)
  }

  /// Why a worker whose start was requested stays in the background: the foreground is full of
  /// workers that were requested after it. Returns the latest of them. `nil`: there is room, or one
  /// of them was requested before.
  mutating func laterForegroundWorker(than index: Int) -> WorkerID? {
    guard let limit = policy.foreground.max else { return nil }
    refresh()
    let asked = workers[index].frontAsked ?? .zero
    let later = workers.indices(.foreground).filter {
      $0 != index && (workers[$0].frontAsked ?? .zero) > asked
    }
    guard later.count >= limit else { return nil }
    return later.max { foregroundRank($0) < foregroundRank($1) }.map { workers[$0].id }
  }

  /// Whether there is room in the foreground without displacing another worker.
  mutating func hasForegroundRoom(for index: Int) -> Bool {
    guard let limit = policy.foreground.max else { return true }
    refresh()
    return workers.indices(.foreground).filter { $0 != index }.count < limit
  }

  /// Whether a restarted worker enters the foreground: it was there before, and no other worker has
  /// entered since. If activity decides, each worker is in the foreground at first.
  mutating func mayReturnToForeground(_ index: Int) -> Bool {
    let worker = workers[index]
    guard worker.wasInFront ?? true || worker.policy.foreground.mode == .activity else {
      return false
    }
    return hasForegroundRoom(for: index)
  }

  /// Records at the end of a run whether the worker was in the foreground, or on its way there.
  mutating func recordWasForeground(_ index: Int) {
    let worker = workers[index]
    switch worker.state == .terminating ? worker.origin : worker.state {
    case .foreground: workers[index].wasInFront = true
    case .launching:
      workers[index].wasInFront = !worker.run.yieldsFront || worker.wasInFront ?? true
    default: workers[index].wasInFront = false
    }
  }

  /// Moves the worker to the background. It gets a message; if it can't get one, it is measured.
  mutating func enterBackground(_ index: Int, _ cause: Cause) {
    workers[index].lastUsed = now
    move(index, to: .background, cause)
    let name = workers[index].id
    guard workers[index].profile.canShed else { return emit(.measure(name)) }
    if isShadow(index), !cause.isRequest {
      reportImagined(index, "been asked to free memory: it left the foreground")
      emit(.measure(name))
    } else {
      workers[index].run.owesBackgroundShed = true
    }
  }

  mutating func advanceForeground(_ index: Int) {
    if checkAnswer(index) { return }
    guard let goal = workers[index].goal else {
      if let idleAt = workers[index].idleAt, now >= idleAt {
        enterBackground(index, .idle(workers[index].policy.foreground.idleAfter))
      }
      return
    }
    switch goal.destination {
    case .foreground: fulfillGoal(index)
    case .background, .suspended, .hibernated: enterBackground(index, goal.cause)
    case .stopped, .terminated: beginEnding(index, goal.cause, gracefully: true)
    }
  }

  mutating func recordActivity(_ index: Int) {
    let state = workers[index].state
    guard state == .foreground || state == .background else { return }
    workers[index].recordSign(at: now)
    workers[index].run.failedSuspensions = nil
    guard state == .background, workers[index].goal == nil else { return }
    if workers[index].policy.foreground.mode == .activity {
      enterForeground(index, .active)
    } else {
      imagineCall(index)
    }
  }
}

extension WorkerRecord {
  fileprivate mutating func recordSign(at now: Instant) {
    lastUsed = now
    run.lastActivity = now
  }

  /// When the worker will have been idle for long enough to leave the foreground. `nil`: it isn't
  /// there, or activity doesn't decide (`mode: activity`).
  var idleAt: Instant? {
    guard state == .foreground, policy.foreground.mode == .activity else { return nil }
    return max(since, run.lastActivity ?? since) + policy.foreground.idleAfter
  }
}
