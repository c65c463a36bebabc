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
    for worker in workers { consider(worker.deadlines) }
    consider(gauge.deadlines(policy.pressure))
    consider(memory.stalledUntil.values.sorted())
    consider(climbDeadlines)
    return next
  }
}

extension WorkerRecord {
  var deadlines: [Instant] {
    let one = [
      readinessDeadline, idleAt, shedDeadline, goal == nil ? graceOver : nil, run.retryResumeAt,
      run.ending?.killAt, run.ending.flatMap { $0.hasGivenUp ? nil : $0.giveUpAt },
    ]
    return one.compactMap { $0 } + taskDeadlines + hibernationDeadlines
  }
}
