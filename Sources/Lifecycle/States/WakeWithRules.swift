// `wake_with`: when a worker wakes, the workers that it names wake at the same time, and those that
// they name. So a request that passes through all of them waits for one wake and not for several in
// a row.
//
// Only sleeping workers are woken; none is started. A worker that was woken in this way wakes no
// others: the first one has woken all that can be reached from it, also if they name each other in
// a cycle.

extension Engine {
  /// The workers that `wake_with` wakes with this one, directly and through others. Itself and
  /// workers that don't exist aren't included. The nearest are first.
  public func wakesWith(_ worker: WorkerID) -> [WorkerID] {
    guard let first = index(of: worker), !workers[first].profile.wakeWith.isEmpty else { return [] }
    var seen: Set<WorkerID> = [worker]
    var names = [worker]
    var position = 0
    while position < names.count {
      if let index = index(of: names[position]) {
        for name in workers[index].profile.wakeWith
        where self.index(of: name) != nil && seen.insert(name).inserted { names.append(name) }
      }
      position += 1
    }
    return Array(names.dropFirst())
  }

  /// Wakes the other workers when this one begins to wake for `cause`.
  mutating func wakeOthers(with index: Int, _ cause: Cause) {
    // A worker that is resumed only to be stopped needs no others.
    guard cause.wakesOthers, workers[index].goal?.destination.isEnd != true else { return }
    let name = workers[index].id
    for other in wakesWith(name) {
      guard let other = self.index(of: other) else { continue }
      recordWakeWith(other, name, forTimer: cause.isTimerOrHeartbeat)
    }
  }

  /// Records the wake like any other: a worker that is being suspended or hibernated wakes after
  /// that.
  private mutating func recordWakeWith(_ index: Int, _ other: WorkerID, forTimer: Bool) {
    guard workers[index].profile.leader == nil else { return }
    imagineCallWith(index)
    recordWakeNeeded(index, other.name, isTimer: forTimer, with: other)
  }

  /// Records wakes in shadow mode: the other workers would have been woken now if they really
  /// slept.
  mutating func imagineOthers(with index: Int) {
    for other in wakesWith(workers[index].id) {
      if let other = self.index(of: other) { imagineCallWith(other) }
    }
  }

  private mutating func imagineCallWith(_ index: Int) {
    guard workers[index].state == .background else { return }
    switch workers[index].shadow.depth {
    case .suspended?, .hibernated?: imagineCall(index)
    // The worker would have been terminated, and a wake starts no worker.
    case .terminated?, nil: break
    }
  }
}

extension WorkerRecord {
  /// What waits for the worker, as the cause of its wake. `nil`: nothing.
  var causeToWake: Cause? {
    guard let reason = run.wakeNeeded else { return nil }
    if let other = run.wakeWith { return .wokenWith(other, forTimer: run.wakeIsTimer) }
    return run.wakeIsTimer ? .timer(reason) : .wakeNeeded(reason)
  }
}

extension Cause {
  /// Whether the workers in `wake_with` wake, too. They don't for a heartbeat, because nothing
  /// waits for it, nor for a wake with another worker, which has woken them already.
  fileprivate var wakesOthers: Bool {
    switch self {
    case .heartbeat, .wokenWith: false
    default: true
    }
  }
}
