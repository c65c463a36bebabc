import Policy

extension Engine {
  /// When `Event.deadline` must be delivered at the latest; always later than the last event.
  ///
  /// An instant that has passed is no deadline any more: everything that it allowed has been
  /// decided on, and what was still in the way will come as an event or has an instant of its own.
  public var nextDeadline: Instant? {
    if reviewDue { return now }
    var next: Instant?
    func consider(_ times: [Instant]) {
      for time in times where time > now && time < next ?? time + .nanoseconds(1) { next = time }
    }
    consider([workers.nextDeadline].compactMap { $0 })
    consider(gauge.deadlines(policy.pressure))
    consider(memory.stalled.values.map(\.until).sorted())
    consider(climbDeadlines)
    return next
  }
}

extension WorkerRecord {
  /// The instants at which time alone may move it on from its state.
  var deadlines: [Instant] {
    switch state {
    case .launching: readinessDeadline.map { [$0] } ?? []
    case .foreground: [idleAt, shedDeadline, answerDeadline].compactMap { $0 }
    case .background:
      [goal == nil ? graceOver : nil, shedDeadline, answerDeadline].compactMap { $0 }
        + taskDeadlines + safePointDeadlines + (imagined?.hibernationDeadlines ?? [])
    case .suspended:
      hibernationDeadlines + [run.retryResumeAt, heartbeatAt].compactMap { $0 }
    case .hibernated: [run.retryResumeAt, heartbeatAt].compactMap { $0 }
    case .terminating: run.ending.map { [$0.killBy?.until, $0.giveUpAt].compactMap { $0 } } ?? []
    case .suspending, .hibernating, .resuming, .terminated: []
    }
  }
}
