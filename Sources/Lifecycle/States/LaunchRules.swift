import Policy

// The transitions terminated → launching → foreground, and the launch watchdog.

extension Engine {
  /// Begins a launch.
  ///
  /// - Parameter asked: when the start was requested; `nil`: now.
  mutating func launch(
    _ index: Int, for request: Request.ID?, verb: Request.Verb, asked: Instant? = nil,
    occasion: Request.Occasion? = nil
  ) {
    workers[index].run = Run()
    workers[index].run.yieldsFront = verb == .restart
    if verb == .start { workers[index].frontAsked = asked ?? now }
    workers[index].startsForFront = false
    workers[index].run.launchAskedAt = now
    recordNeeded(index)
    workers[index].goal = nil
    if let request { workers[index].starts.append(request) }
    let cause = consumeFootprintRestart(index, verb)
    move(index, to: .launching, cause ?? occasion.map { .starting($0, verb) } ?? .requested(verb))
    emit(.launch(workers[index].id))
  }

  mutating func recordLaunched(_ index: Int) {
    guard workers[index].state == .launching, !workers[index].run.isSpawned else { return }
    workers[index].run.isSpawned = true
    workers[index].run.spawnedAt = now
    // The deadline counts from here: of many workers that are started together, the last ones wait
    // until others are ready.
    if workers[index].profile.announcesReadiness {
      workers[index].run.readyBy = ExtensibleDeadline(now + workers[index].policy.watchdog.launch)
    }
  }

  mutating func recordReady(_ index: Int) {
    guard workers[index].state == .launching else { return }
    recordLaunched(index)
    if workers[index].profile.announcesReadiness {
      let start = workers[index].run.spawnedAt ?? workers[index].run.launchAskedAt
      learnLaunchCost(index, now - start)
    }
    becomeReady(index, .becameReady)
  }

  mutating func recordLaunchFailed(_ index: Int, _ reason: String) {
    guard workers[index].state == .launching else { return }
    recordWasForeground(index)
    move(index, to: .terminated, .failed(reason))
    concludeRun(index, "\(workers[index].id) could not be launched: \(reason)")
  }

  /// Ends the launch. A worker that was asked to end meanwhile doesn't enter the foreground. One
  /// that was asked to sleep enters the background directly.
  private mutating func becomeReady(_ index: Int, _ cause: Cause) {
    let goal = workers[index].goal
    if let goal, goal.destination.isEnd { return }
    // The reason for a restart stays visible.
    let isRestart = if case .restartedForFootprint = workers[index].cause { true } else { false }
    let cause = isRestart ? workers[index].cause : cause
    answerStarts(index, code: .done, text: "\(workers[index].id) is running")
    workers[index].lastUsed = now
    workers[index].run.runningSince = now
    workers[index].uses.began(at: now)
    emit(.measure(workers[index].id))
    if let goal, goal.destination != .foreground {
      enterBackground(index, goal.cause)
    } else if goal == nil, workers[index].run.yieldsFront, !mayReturnToForeground(index) {
      enterBackground(index, cause)
    } else if goal == nil, !workers[index].run.yieldsFront,
      let later = laterForegroundWorker(than: index)
    {
      enterBackground(index, .displaced(by: later))
    } else {
      enterForeground(index, goal?.cause ?? cause)
    }
  }

  mutating func advanceLaunching(_ index: Int) {
    guard workers[index].run.isSpawned else { return }
    let worker = workers[index]
    if let goal = worker.goal, goal.destination.isEnd {
      beginEnding(index, goal.cause, gracefully: true)
    } else if !worker.profile.announcesReadiness {
      becomeReady(index, .launched)
    } else if worker.run.missedReadiness {
      failWaiting(index, "\(worker.id) was launched and is not ready yet")
    } else if let deadline = worker.readinessDeadline, now >= deadline {
      missReadiness(index)
    }
  }

  /// Answers the requests that wait for a readiness that may never come.
  private mutating func failWaiting(_ index: Int, _ text: String) {
    answerStarts(index, code: .failed, text: text)
    failGoal(index, text)
  }

  private mutating func missReadiness(_ index: Int) {
    workers[index].run.missedReadiness = true
    let limit = workers[index].policy.watchdog.launch.text
    let name = workers[index].id
    let cause = Cause.watchdog("not ready within watchdog.launch, \(limit)")
    let sentence = "\(name) was not ready within \(limit)"
    let mayEnd = workers[index].policy.watchdog.onTimeout == .terminate
    let isEnded = mayEnd && !isShadow(index)
    failWaiting(index, "\(sentence): it is \(isEnded ? "terminated" : "left running")")
    if isEnded { return beginEnding(index, cause, gracefully: true) }
    if mayEnd { reportImagined(index, "been terminated: \(cause.sentence)") }
    move(index, to: .launching, cause)
  }
}

extension WorkerRecord {
  var readinessDeadline: Instant? {
    guard state == .launching, run.isSpawned, profile.announcesReadiness, !run.missedReadiness
    else { return nil }
    return run.readyBy?.until
  }
}
