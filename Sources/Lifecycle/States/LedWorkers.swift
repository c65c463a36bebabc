import Policy

// Workers that another engine leads (`WorkerProfile.leader`), because a wrapper has an engine of
// its own. The leader reports the worker's state, and this engine decides nothing about its life
// cycle. But its memory is the machine's, so it is on the ladder with all others. It is trimmed,
// asked to free memory if it can be, hibernated, or terminated if that is permitted and it can't be
// hibernated. The leader carries out each of these.

extension Engine {
  /// Advances a led worker. Only operations that the ladder has begun have deadlines here.
  mutating func advanceLed(_ index: Int) {
    switch workers[index].state {
    case .terminating: advanceTerminating(index)
    case .hibernating: advanceTransit(index)
    case .foreground, .background:
      advanceShed(index)
      advanceTrim(index)
    default: break
    }
  }

  /// The leader has moved the worker, or reports its state. An operation that this engine has
  /// requested comes first: it has an outcome of its own.
  mutating func recordMoved(_ index: Int, to state: WorkerState, reason: String?) {
    let before = workers[index].state
    guard workers[index].profile.leader != nil, before != state, before.isStable, state.isStable
    else {
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
      workers[index].run.trim?.isWanted = false
      endShedOfLed(index)
    }
    move(index, to: state, .led(reason))
  }
}

extension Engine {
  /// Ends a led worker's shed request: the worker sleeps now or is about to, and frees nothing
  /// more.
  mutating func endShedOfLed(_ index: Int) {
    workers[index].run.owesWarning = false
    guard workers[index].run.shed != nil else { return }
    workers[index].run.shed?.isFinishing = true
    let footprint = workers[index].footprint
    recordShedFinished(index, before: footprint, after: footprint)
  }
}
