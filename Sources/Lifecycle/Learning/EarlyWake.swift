import Policy

// A worker that is wanted again as soon as it was put away wasn't idle. It moves up for a while, so
// that others go before it (ANRs and app switchers taught the phones the same).

/// What being put away too early has earned a worker.
public struct FalseIdle: Hashable, Sendable {
  public var count: Int
  public var last: Instant
  /// Points of band that it has now.
  public var bonus: Int
  /// Its idle times, where they were raised: before suspension, and before hibernation.
  public var backOffs: [IdleBackOff] = []
}

struct FalseIdleRecord: Codable, Sendable, Hashable {
  /// When the policy put it away, until it is wanted again.
  var putAwayAt: Instant?
  var count = 0
  var last = Instant.zero
  var points = 0

  /// Halved for each `halvesEvery` that has passed.
  func bonus(at now: Instant, _ rules: FalseIdleRules) -> Int {
    let span = rules.halvesEvery.wholeNanoseconds
    guard points > 0, span > 0 else { return points }
    return points >> min((now - last).wholeNanoseconds / span, 62)
  }

  func bonusChangesAt(_ now: Instant, _ rules: FalseIdleRules) -> Instant? {
    let span = rules.halvesEvery.wholeNanoseconds
    guard bonus(at: now, rules) > 0, span > 0 else { return nil }
    let halvings = (now - last).wholeNanoseconds / span + 1
    return last + rules.halvesEvery * Int(halvings)
  }
}

extension Engine {
  /// Suspended for idleness, or terminated for memory: not what people asked for.
  mutating func notePutAway(_ index: Int, _ cause: Cause) {
    switch cause {
    case .graceOver, .pressure: workers[index].falseIdle.putAwayAt = now
    case .heartbeat, .quietAgain: break
    default: workers[index].falseIdle.putAwayAt = nil
    }
  }

  /// Somebody or something wants it back.
  mutating func noteWanted(_ index: Int) {
    guard let putAwayAt = workers[index].falseIdle.putAwayAt else { return }
    workers[index].falseIdle.putAwayAt = nil
    let rules = workers[index].policy.falseIdle
    if workers[index].state != .terminated { noteSleep(index, since: putAwayAt) }
    guard now - putAwayAt < rules.within else { return }
    let left = workers[index].falseIdle.bonus(at: now, rules)
    workers[index].falseIdle.points = min(left + rules.bonus, 29)
    workers[index].falseIdle.count += 1
    workers[index].falseIdle.last = now
  }
}

extension WorkerRecord {
  func bonus(at now: Instant) -> Int { falseIdle.bonus(at: now, policy.falseIdle) }

  func falseIdleTold(at now: Instant) -> FalseIdle? {
    guard falseIdle.count > 0 else { return nil }
    return FalseIdle(
      count: falseIdle.count, last: falseIdle.last, bonus: bonus(at: now),
      backOffs: idleBackOffs(at: now))
  }
}
