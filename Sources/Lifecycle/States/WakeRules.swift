import Policy

// The transitions suspended, hibernated → resuming → background or foreground.

extension Engine {
  /// Records what waits for a worker that sleeps or is being suspended. A running worker sees its
  /// input itself.
  ///
  /// - Parameters:
  ///   - isTimer: whether only a timer waits, of this worker or of `other`.
  ///   - other: the worker that this one wakes with, if that is the reason.
  mutating func recordWakeNeeded(
    _ index: Int, _ reason: String, isTimer: Bool = false, with other: WorkerID? = nil
  ) {
    switch workers[index].state {
    case .suspending, .suspended, .hibernating, .hibernated:
      // A client has precedence over another worker, and either of them over a timer.
      let counts = !isTimer && (other == nil || workers[index].run.wakeIsTimer)
      guard workers[index].run.wakeNeeded == nil || counts else { return }
      workers[index].run.wakeNeeded = reason
      workers[index].run.wakeIsTimer = isTimer
      workers[index].run.wakeWith = other
    default: break
    }
  }

  /// Makes a waiting connection or data the worker's goal, if no request is under way.
  mutating func setGoalFromWake(_ index: Int) {
    guard workers[index].goal == nil, let cause = workers[index].causeToWake else { return }
    workers[index].run.wakeNeeded = nil
    // A worker that no client has called displaces no other worker.
    let isCalled = if case .wakeNeeded = cause { true } else { false }
    let toFront =
      isCalled && (workers[index].policy.foreground.mode == .activity || mayReturn(index))
    workers[index].goal = Goal(
      destination: toFront ? .foreground : .background, cause: cause, requests: [])
  }

  /// Whether only a lack of memory has moved the worker out of the foreground, and no other worker
  /// has entered since.
  private mutating func mayReturn(_ index: Int) -> Bool {
    workers[index].run.returnsToFront == true && hasForegroundRoom(for: index)
  }

  mutating func advanceHibernated(_ index: Int) {
    setGoalFromWake(index)
    if workers[index].goal == nil { considerHeartbeat(index) }
    switch workers[index].goal?.destination {
    case .foreground?, .background?, .stopped?: resume(index)
    case .suspended?, .hibernated?: fulfillGoal(index)
    case .terminated?:
      // The worker can't run without its memory, so a request to end can't reach it.
      beginEnding(index, workers[index].goal?.cause ?? .active, gracefully: false)
    case nil: break
    }
  }

  mutating func resume(_ index: Int) {
    if let retryAt = workers[index].run.retryResumeAt, now < retryAt { return }
    workers[index].run.wakeNeeded = nil
    let cause = workers[index].goal?.cause ?? .active
    if !cause.isTimerOrHeartbeat { recordNeeded(index) }
    if workers[index].state == .hibernated, cause != .heartbeat { recordImageRead(index) }
    move(index, to: .resuming, cause)
    emit(.resume(workers[index].id))
    wakeOthers(with: index, cause)
  }

  /// Records the outcome of a resume.
  ///
  /// - Parameter cost: its duration; `nil`: not measured.
  mutating func recordResumed(_ index: Int, _ cost: Duration?) {
    guard workers[index].state == .resuming else { return }
    if workers[index].origin == .hibernated { learnResume(index, cost) }
    if workers[index].cause == .heartbeat, workers[index].goal?.destination == .background {
      beginHeartbeat(index)
    } else {
      workers[index].lastUsed = now
      workers[index].uses.began(at: now)
    }
    if workers[index].isWokenByTimer { beginTimerRun(index) }
    workers[index].run.runningSince = now
    workers[index].run.hasWoken = true
    workers[index].run.lastWake = LastWake(at: now, cause: workers[index].cause)
    imagineWake(index)
    restartAnswerWatchdog(index)
    workers[index].run.retryResumeAt = nil
    workers[index].run.failedResumes = 0
    workers[index].run.lastActivity = nil
    let cause = workers[index].cause
    if workers[index].goal?.destination == .foreground {
      enterForeground(index, cause)
    } else {
      move(index, to: .background, cause)
    }
  }

  private mutating func learnResume(_ index: Int, _ cost: Duration?) {
    if let image = workers[index].run.hibernation.imageSize { countImageRemoved(image) }
    let footprint = workers[index].run.hibernation.footprintBefore ?? .zero
    if let cost { learnResumeCost(index, cost: cost, footprint: footprint) }
    workers[index].run.hibernation.lastResume = now
    workers[index].run.hibernation.failures = 0
    workers[index].run.hibernation.retryAt = nil
    workers[index].run.hibernation.imageSize = nil
    if let before = workers[index].run.hibernation.footprintBefore {
      recordFootprint(index, before)
    }
    emit(.measure(workers[index].id))
  }

  /// Records a failed resume.
  ///
  /// - Parameter to: the state now; `nil`: the state that the resume came from.
  mutating func recordResumeFailed(
    _ index: Int, _ reason: String, intact: Bool, to newState: WorkerState? = nil
  ) {
    guard workers[index].state == .resuming else { return }
    let name = workers[index].id
    guard intact else { return endUnverified(index, "the resume failed: \(reason)") }
    let goal = workers[index].goal
    let origin = workers[index].origin
    if let newState, newState != origin {
      workers[index].run.isMeasuredAsleep = false
      emit(.measure(name))
    }
    move(index, to: newState ?? origin, .failed(reason))
    workers[index].run.failedResumes += 1
    failGoal(index, "\(name) could not be resumed: \(reason)")
    // Only the engine retries for what waits at the worker's sockets: after 1 s, doubled with each
    // failure, at most 64 s.
    guard let goal, goal.cause.isWaitingInput else { return }
    let shift = min(workers[index].run.failedResumes - 1, 6)
    workers[index].run.retryResumeAt = now + .seconds(1 << shift)
    workers[index].goal = Goal(destination: goal.destination, cause: goal.cause, requests: [])
  }
}

extension WorkerRecord {
  /// Whether the worker is being resumed for its own timer, or with a worker that is, and nothing
  /// else needs it meanwhile.
  fileprivate var isWokenByTimer: Bool {
    guard cause.isTimerOrHeartbeat, cause != .heartbeat, policy.foreground.mode == .activity else {
      return false
    }
    guard let goal, goal.destination == .background else { return false }
    return goal.requests.isEmpty
  }
}

extension Cause {
  /// Whether nothing outside the worker needed it.
  var isTimerOrHeartbeat: Bool {
    switch self {
    case .heartbeat, .timer: true
    case .wokenWith(_, let forTimer): forTimer
    default: false
    }
  }

  /// Whether a connection, data, a signal or a timer waits that won't be reported again.
  fileprivate var isWaitingInput: Bool {
    switch self {
    case .wakeNeeded, .timer: true
    default: false
    }
  }
}
