import Policy

// While the machine sleeps no worker can do anything. So that time doesn't count for deadlines that
// a worker, or the daemon, has to meet. It counts for how long a worker hasn't been used.

extension Engine {
  /// Moves running deadlines by the time that the machine slept.
  mutating func recordMachineSlept(_ time: Duration) {
    guard time > .zero else { return }
    ladderState.step?.putOff(by: time)
    for index in workers.indices where workers[index].state.isAlive {
      let since = workers[index].since
      workers[index].run.putOff(by: time, since: since)
    }
  }
}

extension Run {
  /// Moves the run's deadlines.
  ///
  /// - Parameter since: when the worker entered its state. The limits of tasks and holds count from
  ///   then at the earliest.
  fileprivate mutating func putOff(by time: Duration, since: Instant) {
    // How long the launch took is learned, so its start moves, too.
    launchAskedAt = launchAskedAt + time
    spawnedAt?.putOff(by: time)
    readyBy?.putOff(by: time)
    shed?.putOff(by: time)
    unanswered?.until.putOff(by: time)
    watchdog?.putOff(by: time)
    notice?.asked.putOff(by: time)
    notice?.until.putOff(by: time)
    limits?.putOff(by: time)
    for place in tasks.indices {
      tasks[place].began = max(tasks[place].began, since) + time
      tasks[place].expiredAt?.putOff(by: time)
    }
    heldSince = heldSince.map { max($0, since) + time }
    lockWatch?.putOff(by: time)
    beatUntil?.putOff(by: time)
    tick?.began.putOff(by: time)
    tick?.lastWork.putOff(by: time)
    transit?.inspectAt.putOff(by: time)
    ending?.killBy?.putOff(by: time)
    ending?.giveUpAt.putOff(by: time)
  }
}

extension Instant {
  mutating func putOff(by time: Duration) { self = self + time }
}

extension ShedInFlight {
  fileprivate mutating func putOff(by time: Duration) {
    askedAt.putOff(by: time)
    deadline.putOff(by: time)
    finishBy?.putOff(by: time)
  }
}

extension LockWatch {
  fileprivate mutating func putOff(by time: Duration) {
    began.putOff(by: time)
    askedAt.putOff(by: time)
    answeredAt?.putOff(by: time)
  }
}

extension LadderState.Step {
  fileprivate mutating func putOff(by time: Duration) {
    switch self {
    case .hibernating(let worker, let until): self = .hibernating(worker, until: until + time)
    case .terminating(let worker, let until): self = .terminating(worker, until: until + time)
    case .purging(let worker, let until): self = .purging(worker, until: until + time)
    case .warning(let until): self = .warning(until: until + time)
    }
  }
}
