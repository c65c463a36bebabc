import Policy

// A worker that is needed again soon after it was put to sleep wasn't idle. Its band is higher for
// a while, so that other workers are terminated before it (phones learned the same from ANRs and
// app switchers).

/// The consequences for a worker that was put to sleep too early.
public struct EarlyWake: Hashable, Sendable {
  /// The number of early wakes.
  public var count: Int
  /// When the last early wake was.
  public var last: Instant
  /// The points that the worker's band is raised by now.
  public var bonus: Int
  /// Its idle times before suspension and before hibernation, if they were raised.
  public var backOffs: [IdleBackOff] = []
}

struct EarlyWakeRecord: Codable, Sendable, Hashable {
  /// When the policy put the worker to sleep. Cleared when the worker is needed again.
  var putAwayAt: Instant?
  var count = 0
  var last = Instant.zero
  var points = 0

  /// The points, halved for each `halvesEvery` that has passed.
  func bonus(at now: Instant, _ rules: EarlyWakeRules) -> Int {
    let span = rules.halvesEvery.wholeNanoseconds
    guard points > 0, span > 0 else { return points }
    return points >> min((now - last).wholeNanoseconds / span, 62)
  }

  func bonusChangesAt(_ now: Instant, _ rules: EarlyWakeRules) -> Instant? {
    let span = rules.halvesEvery.wholeNanoseconds
    guard bonus(at: now, rules) > 0, span > 0 else { return nil }
    let halvings = (now - last).wholeNanoseconds / span + 1
    return last + rules.halvesEvery * Int(halvings)
  }
}

extension Engine {
  /// Records that the policy has put the worker to sleep: it was suspended for idleness, or
  /// terminated for lack of memory. Sleep on request doesn't count.
  mutating func recordPutToSleep(_ index: Int, _ cause: Cause) {
    switch cause {
    case .graceOver, .pressure: workers[index].earlyWake.putAwayAt = now
    case .heartbeat, .quietAgain: break
    default: workers[index].earlyWake.putAwayAt = nil
    }
  }

  /// Records that a person, a program or an event needs the worker again.
  mutating func recordNeeded(_ index: Int) {
    guard let putAwayAt = workers[index].earlyWake.putAwayAt else { return }
    workers[index].earlyWake.putAwayAt = nil
    let rules = workers[index].policy.earlyWake
    if workers[index].state != .terminated { recordSleep(index, since: putAwayAt) }
    guard now - putAwayAt < rules.within else { return }
    let left = workers[index].earlyWake.bonus(at: now, rules)
    workers[index].earlyWake.points = min(left + rules.bonus, 29)
    workers[index].earlyWake.count += 1
    workers[index].earlyWake.last = now
  }
}

extension WorkerRecord {
  func bonus(at now: Instant) -> Int { earlyWake.bonus(at: now, policy.earlyWake) }

  func earlyWakeSummary(at now: Instant) -> EarlyWake? {
    guard earlyWake.count > 0 else { return nil }
    return EarlyWake(
      count: earlyWake.count, last: earlyWake.last, bonus: bonus(at: now),
      backOffs: idleBackOffs(at: now))
  }
}
