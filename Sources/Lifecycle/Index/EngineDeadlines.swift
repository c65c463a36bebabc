import Policy

extension Engine {
  /// When `Event.deadline` must be delivered at the latest. It is later than the last event, except
  /// after `setPolicy`. `nil`: time alone changes nothing.
  ///
  /// An instant that has passed is no deadline any more: everything that it allowed has been
  /// decided, and anything else that prevented a step comes as an event or has a deadline of its
  /// own.
  public var nextDeadline: Instant? {
    if reviewDue { return now }
    var next = EarliestDeadline(after: now)
    next.consider(workers.nextDeadline)
    gauge.considerDeadlines(policy.pressure, &next)
    next.consider(pressureSet?.until)
    for index in PerLevel<Instant>.levels.indices {
      next.consider(memory.stalled[PerLevel<Instant>.levels[index]]?.until)
    }
    considerClimb(&next)
    return next.instant
  }
}

extension WorkerRecord {
  /// The next instant at which time alone may change this worker. `nil`: there is none.
  func nextDeadline(after now: Instant) -> Instant? {
    var next = EarliestDeadline(after: now)
    next.consider(protectedUntil)
    considerDeadlines(&next)
    return next.instant
  }

  /// The instants at which time alone may move the worker out of its state.
  func considerDeadlines(_ next: inout EarliestDeadline) {
    // A led worker's leader decides everything except shed requests and trims of the ladder.
    let isLed = profile.leader != nil && state.runs
    switch state {
    case _ where isLed:
      next.consider(shedDeadline)
      considerTrim(&next)
    case .launching:
      next.consider(readinessDeadline)
      next.consider(run.awaitedReadiness?.until)
    case .foreground, .background:
      considerTrim(&next)
      considerLimits(&next)
      next.consider(shedDeadline)
      next.consider(answerDeadline)
      next.consider(run.watchdog?.deadline)
      guard state == .background else { return next.consider(idleAt) }
      if goal == nil { next.consider(graceOver) }
      considerTasks(&next)
      considerSafePoint(&next)
      imagined?.considerHibernation(&next)
    case .suspended:
      considerHibernation(&next)
      considerLimits(&next)
      next.consider(run.retryResumeAt)
      next.consider(heartbeatAt)
    case .hibernated:
      next.consider(run.retryResumeAt)
      next.consider(heartbeatAt)
      next.consider(demotedAt)
    case .terminating:
      next.consider(run.ending?.killBy?.until)
      next.consider(run.ending?.giveUpAt)
    case .suspending, .hibernating, .resuming:
      next.consider(run.transit?.inspectAt)
      // From then on the ladder doesn't wait any longer for what the operation may free.
      next.consider(since + LadderState.timeout)
    case .terminated: break
    }
  }
}

/// The earliest of some instants after `now`. It needs no list of them: the engine asks for it
/// after each event.
struct EarliestDeadline {
  let now: Instant
  private var best = Instant(nanoseconds: .max)

  init(after now: Instant) { self.now = now }

  /// An instant that has passed doesn't count, nor does one that saturated ("never").
  mutating func consider(_ time: Instant?) {
    guard let time, time > now, time < best else { return }
    best = time
  }

  var instant: Instant? { best.nanoseconds == .max ? nil : best }
}
