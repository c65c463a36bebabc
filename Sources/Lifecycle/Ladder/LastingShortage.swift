import Policy

// A worker isn't terminated because of one reading, nor because of stalls while memory is
// available. Memory has to be short, and for some time.

extension Engine {
  /// Whether a rung that terminates these workers may be used now: some level up to this one lists
  /// the rung and allows a termination.
  func mayTerminate(_ victims: Ladder.Rung.Victims, at level: PressureLevel) -> Bool {
    var candidate = level
    while candidate > .normal {
      if policy.ladder[candidate].contains(.terminate(victims)), mayEndWorkers(at: candidate) {
        return true
      }
      candidate = candidate.below
    }
    return false
  }

  /// Whether the level allows a termination: the operator has set the level, or memory is short and
  /// has been short for `pressure.terminate_after`.
  func mayEndWorkers(at level: PressureLevel) -> Bool {
    isSet(level) || isReallyShort(at: level) && hasLasted(level)
  }

  /// Whether memory is so short that a later rung of the level ends workers now.
  func endsWorkersNow(_ level: PressureLevel) -> Bool {
    !isSet(level) && ladderState.pause == nil
      && policy.ladder.steps(at: level).contains { rung in
        guard case .terminate(let victims) = rung, !workers.isEmpty(victims.openGroup) else {
          return false
        }
        return mayTerminate(victims, at: level)
      }
  }

  /// Whether the operator has set a level at least as high as this.
  func isSet(_ level: PressureLevel) -> Bool { setPressure.map { $0.level >= level } ?? false }

  /// Whether the level has held for `pressure.terminate_after`. On a host, a memory reading has to
  /// confirm it at the end of that time, if one comes.
  private func hasLasted(_ level: PressureLevel) -> Bool {
    guard let since = gauge.heldSince[level] else { return false }
    let lastingAt = since + policy.pressure.terminateAfter
    guard now >= lastingAt else { return false }
    return policy.memory != .host || memory.heardAt >= lastingAt
      || now >= lastingAt + LadderState.readingTimeout
  }
}
