import Policy

// `wake_with`: when a worker wakes, the workers that it names wake at the same time, and those that they
// name, so that a request that passes through all of them waits for one wake and not for one after the
// other.
//
// Only sleeping workers are woken; none is started. A worker that was woken in this way wakes no others:
// the first one has woken all that it leads to, also where they name each other in a circle.

extension Engine {
  /// The workers that `wake_with` wakes with this one, directly and through others, without itself and
  /// without those that aren't there; in the order in which they are found.
  public func wakesWith(_ worker: WorkerID) -> [WorkerID] {
    guard let first = index(of: worker), !workers[first].profile.wakeWith.isEmpty else { return [] }
    var seen: Set<WorkerID> = [worker]
    var found = [worker]
    var next = 0
    while next < found.count {
      if let index = index(of: found[next]) {
        for name in workers[index].profile.wakeWith
        where self.index(of: name) != nil && seen.insert(name).inserted { found.append(name) }
      }
      next += 1
    }
    return Array(found.dropFirst())
  }

  /// The worker begins to wake for this cause.
  mutating func wakeOthers(with index: Int, _ cause: Cause) {
    // A worker that is resumed only to be stopped needs no others.
    guard cause.wakesOthers, workers[index].goal?.destination.isEnd != true else { return }
    let name = workers[index].id
    for other in wakesWith(name) {
      guard let other = self.index(of: other) else { continue }
      recordWakeWith(other, name, forTimer: cause.isOwnClock)
    }
  }

  /// Remembered like any other wake: one that is being suspended or hibernated wakes after that.
  private mutating func recordWakeWith(_ index: Int, _ other: WorkerID, forTimer: Bool) {
    guard workers[index].profile.leader == nil else { return }
    switch workers[index].state {
    case .suspending, .suspended, .hibernating, .hibernated:
      // A client, or another worker, counts more than a timer.
      let counts = workers[index].run.wakeIsTimer && !forTimer
      guard workers[index].run.wakeNeeded == nil || counts else { return }
      workers[index].run.wakeNeeded = other.name
      workers[index].run.wakeIsTimer = forTimer
      workers[index].run.wakeWith = other
    case .background: imagineCallWith(index)
    default: break
    }
  }

  /// The worker would have woken now, if its sleep weren't only imagined.
  mutating func imagineOthers(with index: Int) {
    for other in wakesWith(workers[index].id) {
      if let other = self.index(of: other) { imagineCallWith(other) }
    }
  }

  private mutating func imagineCallWith(_ index: Int) {
    guard workers[index].state == .background else { return }
    switch workers[index].shadow.depth {
    case .suspended?, .hibernated?: imagineCall(index)
    // It would have ended, and isn't started by this.
    case .terminated?, nil: break
    }
  }
}

extension WorkerRecord {
  /// What waits for it, as the reason of its wake; `nil`: nothing.
  var causeToWake: Cause? {
    guard let why = run.wakeNeeded else { return nil }
    if let other = run.wakeWith { return .wokenWith(other, forTimer: run.wakeIsTimer) }
    return run.wakeIsTimer ? .timer(why) : .wakeNeeded(why)
  }
}

extension Cause {
  /// Not for a moment's run, which nothing waits for.
  fileprivate var wakesOthers: Bool {
    switch self {
    case .heartbeat, .wokenWith: false
    default: true
    }
  }
}
