import Policy

// A policy that repeatedly puts a worker to sleep just before it is needed costs wakes and, if it
// hibernates, disk writes. So the idle time of such a worker doubles each time, up to
// `early_wake.max_idle`. It halves again with each `early_wake.halves_every` without such a
// mistake, and with each sleep that lasted. Each worker has two records. The record of suspensions
// counts outside causes only. The record of hibernations counts the worker's own timers too,
// because each of them costs an image.

/// The last sleeps of a worker, and how often its idle time was doubled because of them.
struct SleepRecord: Codable, Sendable, Hashable {
  /// One bit for each sleep, the latest lowest. It is set if the worker was needed again too soon.
  private var bits: UInt8 = 0
  private(set) var count = 0
  private var steps = 0
  private var changedAt = Instant.zero

  /// The number of sleeps that are remembered.
  static let maxCount = 6
  /// The number of too short sleeps from which on the idle time grows. A single one is chance.
  static let minEarly = 2
  private static let maxSteps = 20

  var early: Int { bits.nonzeroBitCount }

  mutating func record(isEarly: Bool, at now: Instant, _ rules: EarlyWakeRules) {
    bits = (bits << 1 | (isEarly ? 1 : 0)) & (1 << Self.maxCount - 1)
    count = min(count + 1, Self.maxCount)
    let before = steps(at: now, rules)
    steps = isEarly ? early < Self.minEarly ? before : before + 1 : max(0, before - 1)
    steps = min(steps, Self.maxSteps)
    changedAt = now
  }

  /// How often the idle time is doubled.
  private func steps(at now: Instant, _ rules: EarlyWakeRules) -> Int {
    let span = rules.halvesEvery.wholeNanoseconds
    guard steps > 0, span > 0, now > changedAt else { return steps }
    return max(0, steps - Int(clamping: (now - changedAt).wholeNanoseconds / span))
  }

  /// The raised idle time that replaces `base` from `start` on. `nil`: `base` isn't raised.
  func raised(_ base: Duration, from start: Instant, _ rules: EarlyWakeRules) -> Duration? {
    guard steps > 0, let longest = rules.maxIdle else { return nil }
    let steps = steps(at: start, rules)
    guard steps > 0 else { return nil }
    // An idle time of zero couldn't be doubled.
    let initial = max(base, .seconds(1))
    let factor = Int64(1) << Int64(steps)
    let (doubled, isTooLong) = initial.wholeNanoseconds.multipliedReportingOverflow(by: factor)
    let time = isTooLong ? longest : min(.nanoseconds(doubled), longest)
    return time > base ? time : nil
  }

  mutating func move(by shift: Duration) {
    if count > 0 { changedAt = changedAt + shift }
  }
}

/// A raised idle time of a worker, and why it was raised.
public struct IdleBackOff: Hashable, Sendable {
  /// The idle time's key: `background.suspend_after` or `hibernate.after`.
  public var key: PolicyKey
  /// The policy's idle time.
  public var base: Duration
  /// The raised idle time.
  public var idle: Duration
  /// Sleeps that ended within this time counted as too short.
  public var within: Duration
  /// The number of too short sleeps.
  public var early: Int
  /// The number of sleeps that are remembered, 6 at most.
  public var sleeps: Int
}

extension IdleBackOff {
  /// A clause such as `needed within 20 s of falling asleep in 5 of its last 6 sleeps: idle time 30
  /// s → 2 min`.
  public var sentence: String {
    "needed within \(within.text) of falling asleep in \(early) of its last \(sleeps) sleeps: "
      + "idle time \(base.text) → \(idle.text)"
  }
}

extension WorkerRecord {
  /// How `background.suspend_after` is raised. `nil`: it isn't.
  func idleBackOff(from start: Instant) -> IdleBackOff? {
    guard let sleeps, let base = policy.background.suspendAfter else { return nil }
    return backOff(sleeps, key: "background.suspend_after", base: base, from: start)
  }

  /// How `hibernate.after` is raised. `nil`: it isn't.
  var hibernationBackOff: IdleBackOff? {
    guard let images, let base = hibernateAfter else { return nil }
    return backOff(images, key: "hibernate.after", base: base, from: imageWantedAt)
  }

  /// When the idle time before a hibernation began. The worker's own timers don't interrupt its
  /// sleep. But if its images are needed too soon, the time counts from the last time that one was
  /// needed.
  private var imageWantedAt: Instant {
    max(run.restingSince, run.hibernation.lastResume ?? run.restingSince)
  }

  /// The time in `hibernate.after`, or zero for a worker of at most `hibernate.at_once_up_to`.
  /// `nil`: never.
  private var hibernateAfter: Duration? {
    let rules = policy.hibernate
    if let small = rules.atOnceUpTo, movable <= small { return .zero }
    return rules.after
  }

  /// What `hibernate.after` counts from, and how long it is. `nil`: never.
  var idleBeforeHibernation: (from: Instant, after: Duration)? {
    guard let base = hibernateAfter else { return nil }
    guard let raised = images?.raised(base, from: imageWantedAt, policy.earlyWake) else {
      return (run.restingSince, base)
    }
    return (imageWantedAt, raised)
  }

  private func backOff(
    _ record: SleepRecord, key: String, base: Duration, from start: Instant
  ) -> IdleBackOff? {
    let rules = policy.earlyWake
    guard let idle = record.raised(base, from: start, rules) else { return nil }
    return IdleBackOff(
      key: PolicyKey(key), base: base, idle: idle, within: rules.within, early: record.early,
      sleeps: record.count)
  }

  /// The idle times that are raised.
  func idleBackOffs(at now: Instant) -> [IdleBackOff] {
    let start = state == .background ? since : now
    return [idleBackOff(from: start), hibernationBackOff].compactMap { $0 }
  }

  var suspendAfter: Duration? {
    policy.background.suspendAfter.map {
      sleeps?.raised($0, from: since, policy.earlyWake) ?? $0
    }
  }
}

extension Engine {
  /// The idle times of a worker that are raised now. Empty: none is raised, or there is no such
  /// worker.
  public func idleBackOffs(of worker: WorkerID, at now: Instant? = nil) -> [IdleBackOff] {
    index(of: worker).map { workers[$0].idleBackOffs(at: max(self.now, now ?? self.now)) } ?? []
  }

  /// Records a sleep that the policy began and that ends now, because the worker is needed.
  mutating func recordSleep(
    _ index: Int, since: Instant, in records: WritableKeyPath<WorkerRecord, SleepRecord?> = \.sleeps
  ) {
    let rules = workers[index].policy.earlyWake
    guard rules.maxIdle != nil else { return }
    var record = workers[index][keyPath: records] ?? SleepRecord()
    record.record(isEarly: now - since < rules.within, at: now, rules)
    workers[index][keyPath: records] = record
  }

  /// Records a hibernation that ends now: the image is read again, for whatever reason.
  mutating func recordImageRead(_ index: Int) {
    guard workers[index].policy.earlyWake.maxIdle != nil,
      let at = workers[index].run.hibernation.at
    else { return }
    workers[index].run.hibernation.at = nil
    recordSleep(index, since: at, in: \.images)
  }
}
