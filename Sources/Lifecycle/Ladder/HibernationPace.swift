import Policy

// Under pressure one worker is hibernated after the other. If each waited for a memory reading, a
// machine with a thousand workers of 15 MB would free 15 MB a second. So the ladder continues at
// once while what it has freed since the last reading isn't enough by that reading. Nothing is lost
// if that was one worker too many; terminations always wait.

extension Engine {
  /// If tasks stall, or the operator has set the level, the shortage has no size. Then at most this
  /// fraction of the machine's memory is freed between two readings: 1/50 (2 %).
  private static let divisorBetweenReadings = Int64(50)

  /// Counts what a finished step has freed.
  mutating func countFreed(by step: LadderState.Step) {
    guard case .hibernating(let worker, _) = step, let index = index(of: worker),
      workers[index].state == .hibernated
    else { return ladderState.freed = nil }
    let freed = workers[index].run.hibernation.footprintBefore ?? .zero
    ladderState.freed = (ladderState.freed ?? .zero) + freed
  }

  /// Hibernates the next worker before the freed memory shows in a reading.
  mutating func hibernateFurther(_ level: PressureLevel) -> LadderState.Outcome {
    guard policy.ladder.steps(at: level).contains(.hibernate), hasFreedTooLittle(level) else {
      return .waiting
    }
    refresh()
    return hibernateNext(level, makingRoom: false) == .acted ? .acted : .waiting
  }

  private func hasFreedTooLittle(_ level: PressureLevel) -> Bool {
    guard policy.memory == .host, let freed = ladderState.freed else { return false }
    if let limit = policy.pressure[level]?.availableBelow, isShort(of: limit, at: level) {
      return isShort(of: limit, at: level, credit: freed)
    }
    return freed.bytes < budget.bytes / Self.divisorBetweenReadings
  }
}
