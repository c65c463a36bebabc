import Policy

// Workers that another engine leads (`WorkerProfile.leader`: a wrapper has an engine of its own). The
// leader reports the state of such a worker, and nothing of its life is decided here. But its memory is
// the machine's, and so it is on the ladder with all others: hibernated, terminated if that is allowed
// and it can't be hibernated, and asked for memory while it runs if it can be, each carried out by its leader.

extension Engine {
  /// Only operations that the ladder has begun have anything to wait for.
  mutating func advanceLed(_ index: Int) {
    switch workers[index].state {
    case .terminating: advanceTerminating(index)
    case .hibernating: advanceTransit(index)
    case .foreground, .background: advanceShed(index)
    default: break
    }
  }

  /// The leader has moved the worker, or reports its state. An operation that this engine has requested
  /// comes first: it has an outcome of its own.
  mutating func recordMoved(_ index: Int, to state: WorkerState, why: String?) {
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
      endShedOfLed(index)
    }
    move(index, to: state, .led(why))
  }
}

extension Engine {
  /// It sleeps now, or is about to, and frees nothing more.
  mutating func endShedOfLed(_ index: Int) {
    workers[index].run.owesWarning = false
    guard workers[index].run.shed != nil else { return }
    workers[index].run.shed?.isFinishing = true
    let footprint = workers[index].footprint
    recordShedFinished(index, before: footprint, after: footprint)
  }
}

extension WorkerState {
  /// No operation is under way, and the worker is alive.
  fileprivate var isRest: Bool {
    switch self {
    case .foreground, .background, .suspended, .hibernated: true
    case .launching, .suspending, .hibernating, .resuming, .terminating, .terminated: false
    }
  }
}
