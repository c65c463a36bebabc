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
    consider(memory.stalledUntil.values.sorted())
    consider(climbDeadlines)
    return next
  }
}

extension WorkerRecord {
  /// The instants at which time alone may move it on from its state.
  var deadlines: [Instant] {
    switch state {
    case .launching: readinessDeadline.map { [$0] } ?? []
    case .foreground: [idleAt, shedDeadline].compactMap { $0 }
    case .background:
      [goal == nil ? graceOver : nil, shedDeadline].compactMap { $0 } + taskDeadlines
    case .suspended: hibernationDeadlines + (run.retryResumeAt.map { [$0] } ?? [])
    case .hibernated: run.retryResumeAt.map { [$0] } ?? []
    case .terminating: run.ending.map { [$0.killAt, $0.giveUpAt].compactMap { $0 } } ?? []
    case .suspending, .hibernating, .resuming, .terminated: []
    }
  }
}
