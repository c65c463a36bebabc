import Policy

// Workers whose life another engine leads (`WorkerProfile.leader`: a wrapper has one of its own). Where
// such a worker stands is told by its leader, and nothing of its life is decided here; but its memory is
// the machine's, and so it is on the ladder with all others: hibernated while it sleeps, terminated
// where it may be, each by its leader's hand.

extension Engine {
  /// Only what the ladder has begun has anything to wait for.
  mutating func advanceLed(_ index: Int) {
    switch workers[index].state {
    case .terminating: advanceTerminating(index)
    case .hibernating: advanceTransit(index)
    default: break
    }
  }

  /// Its leader has moved it, or says where it is. What we have asked of it comes first: that has an
  /// outcome of its own.
  mutating func recordMoved(_ index: Int, _ state: WorkerState) {
    let before = workers[index].state
    guard workers[index].profile.leader != nil, before != state, before.isRest, state.isRest else {
      return
    }
    if state.runs {
      workers[index].lastUsed = now
      if !before.runs { workers[index].run.runningSince = now }
      if state == .foreground { workers[index].uses.began(at: now) }
    } else {
      if before.runs {
        workers[index].run.suspendedSince = now
        workers[index].run.restingSince = now
      }
      workers[index].run.isMeasuredAsleep = false
    }
    move(index, to: state, .led)
  }
}

extension WorkerState {
  /// Nothing is under way, and it is alive.
  fileprivate var isRest: Bool {
    switch self {
    case .foreground, .background, .suspended, .hibernated: true
    case .launching, .suspending, .hibernating, .resuming, .terminating, .terminated: false
    }
  }
}
