import Policy

// A worker isn't terminated for one reading, and not for stalls while memory is available: the
// shortage has to be one, and has to last.

extension Engine {
  /// Whether a rung that ends these workers may be used now: some level up to this one lists it,
  /// and allows an end.
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

  /// Whether the level allows to end a worker: the operator has set it, or memory is short and has
  /// been for `pressure.terminate_after`.
  func mayEndWorkers(at level: PressureLevel) -> Bool {
    isSet(level) || isReallyShort(at: level) && hasLasted(level)
  }

  /// Whether the operator has set a level as high as this.
  func isSet(_ level: PressureLevel) -> Bool { setPressure.map { $0.level >= level } ?? false }

  /// On a host, a reading of the memory has confirmed it at the end of that time, if one comes.
  private func hasLasted(_ level: PressureLevel) -> Bool {
    guard let since = gauge.heldSince[level] else { return false }
    let lastingAt = since + policy.pressure.terminateAfter
    guard now >= lastingAt else { return false }
    return policy.memory != .host || memory.heardAt >= lastingAt
      || now >= lastingAt + LadderState.patienceForReading
  }
}
