import Policy

// While the machine sleeps no worker can do anything. So that time doesn't count for deadlines that
// a worker, or the daemon, has to meet. It counts for how long a worker hasn't been used.

extension Engine {
  /// Moves running deadlines by the time that the machine slept.
  mutating func recordMachineSlept(_ time: Duration) {
    guard time > .zero else { return }
    gauge.postpone(by: time)
    ladderState.step?.postpone(by: time)
    ladderState.settleUntil?.postpone(by: time)
    for index in workers.indices where workers[index].state.isAlive {
      let since = workers[index].since
      workers[index].run.postpone(by: time, since: since)
    }
  }
}

extension Run {
  /// Moves the run's deadlines.
  ///
  /// - Parameter since: when the worker entered its state. The limits of tasks and holds count from
  ///   then at the earliest.
  fileprivate mutating func postpone(by time: Duration, since: Instant) {
    // How long the launch took is learned, so its start moves, too.
    launchAskedAt = launchAskedAt + time
    spawnedAt?.postpone(by: time)
    readyBy?.postpone(by: time)
    shed?.postpone(by: time)
    unanswered?.until.postpone(by: time)
    watchdog?.postpone(by: time)
    notice?.asked.postpone(by: time)
    notice?.until.postpone(by: time)
    limits?.postpone(by: time)
    for index in tasks.indices {
      tasks[index].began = max(tasks[index].began, since) + time
      tasks[index].expiredAt?.postpone(by: time)
    }
    heldSince = heldSince.map { max($0, since) + time }
    lockWatch?.postpone(by: time)
    beatUntil?.postpone(by: time)
    tick?.began.postpone(by: time)
    tick?.lastWork.postpone(by: time)
    transit?.inspectAt.postpone(by: time)
    trim?.giveUpAt?.postpone(by: time)
    ending?.killBy?.postpone(by: time)
    ending?.giveUpAt.postpone(by: time)
  }
}

extension Instant {
  mutating func postpone(by time: Duration) { self = self + time }
}

extension ShedInFlight {
  fileprivate mutating func postpone(by time: Duration) {
    askedAt.postpone(by: time)
    deadline.postpone(by: time)
    finishBy?.postpone(by: time)
  }
}

extension LockWatch {
  fileprivate mutating func postpone(by time: Duration) {
    began.postpone(by: time)
    askedAt.postpone(by: time)
    answeredAt?.postpone(by: time)
  }
}

extension LadderState.Step {
  fileprivate mutating func postpone(by time: Duration) {
    switch self {
    case .hibernating(let worker, let until): self = .hibernating(worker, until: until + time)
    case .terminating(let worker, let until): self = .terminating(worker, until: until + time)
    case .purging(let worker, let until): self = .purging(worker, until: until + time)
    case .trimming(let worker, let until): self = .trimming(worker, until: until + time)
    case .warning(let until): self = .warning(until: until + time)
    }
  }
}
