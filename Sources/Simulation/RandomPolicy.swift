import Lifecycle
import Policy

extension LifecyclePolicy {
  /// A random policy that a person might write, with extreme values on purpose.
  static func random(using generator: inout SplitMix64) -> LifecyclePolicy {
    var policy = LifecyclePolicy()
    policy.mode = generator.chance(10) ? .shadow : .enforce
    policy.memory = generator.chance(50) ? .host : .device(.megabytes(128))
    policy.pressure.sustainedFor = generator.pick([.zero, .zero, .seconds(1)])
    policy.pressure.clearAfter = generator.pick([.zero, .seconds(1), .seconds(5)])
    policy.foreground.mode = generator.pick([.manual, .activity])
    policy.foreground.max = generator.pick([1, 1, 2, nil])
    policy.foreground.idleAfter = generator.pick([.seconds(5), .seconds(60)])
    policy.background.suspendAfter = generator.pick([.zero, .seconds(2), .seconds(10), nil])
    policy.background.taskLimit = generator.pick([.zero, .seconds(20)])
    policy.background.safePoint.fileLocks = generator.pick([.zero, .seconds(3), .seconds(10)])
    policy.background.safePoint.hold = generator.pick([.zero, .seconds(20)])
    policy.background.safePoint.afterWake = generator.pick([.zero, .zero, .seconds(3)])
    policy.background.heartbeat = generator.pick([
      nil, nil, HeartbeatRules(every: .seconds(4), lasting: .seconds(1), whileHibernated: true),
      HeartbeatRules(every: .seconds(2), lasting: .milliseconds(100)),
    ])
    policy.pressure.warnOncePer = generator.pick([.episode, .level])
    policy.hibernate.demoteAfter = generator.pick([nil, .zero, .seconds(8)])
    policy.hibernate.order = generator.pick([[.footprint], [.regret], [.band, .recency]])
    policy.earlyWake.halvesEvery = generator.pick([.seconds(2), .seconds(600)])
    policy.earlyWake.maxIdle = generator.pick([nil, .seconds(4), .seconds(30), .seconds(3600)])
    policy.watchdog.answer = generator.pick([.seconds(3), .seconds(10)])
    policy.hibernate.enabled = generator.chance(90)
    policy.hibernate.after = generator.pick([.zero, .seconds(5), .seconds(30), nil])
    policy.hibernate.maxFootprint = generator.pick([.megabytes(16), .megabytes(64), nil])
    policy.hibernate.cooldown = generator.pick([.zero, .seconds(45)])
    policy.watchdog.launch = generator.pick([.seconds(2), .seconds(20)])
    policy.watchdog.onTimeout = generator.pick([.terminate, .report])
    policy.terminate.grace = generator.pick([.zero, .seconds(2)])
    policy.terminate.settle = generator.pick([.zero, .milliseconds(500)])
    policy.terminate.order = generator.pick([
      [.band, .footprint], [.recency], [.band, .relaunchCost], [.band, .regret],
      [.footprint, .recency], [],
    ])
    policy.ladder = .random(using: &generator)
    var other = generator.separated()
    policy.pressure.terminateAfter = other.pick([.zero, .milliseconds(300), .seconds(1)])
    policy.hibernate.atOnceUpTo = other.pick([nil, nil, .megabytes(4), .megabytes(16)])
    policy.pressure.stallsCountBelow = other.pick([0, 20, 20, 100])
    policy.trim.after = other.pick([nil, nil, .zero, .seconds(3)])
    policy.trim.every = other.pick([.milliseconds(500), .seconds(4), .seconds(600)])
    policy.trim.minGain = other.pick([.zero, .megabytes(1), .megabytes(8)])
    policy.trim.mechanism = other.pick([.auto, .swap, .userfaultfd, .off])
    return policy
  }
}

extension Ladder {
  static func random(using generator: inout SplitMix64) -> Ladder {
    if generator.chance(50) { return Ladder() }
    func rungs(_ generator: inout SplitMix64) -> [Rung] {
      Rung.allCases.shuffled(using: &generator).filter { _ in generator.chance(60) }
    }
    return Ladder(
      warning: rungs(&generator), urgent: rungs(&generator), critical: rungs(&generator))
  }
}

extension WorkerProfile {
  static func random(
    from policy: LifecyclePolicy, using generator: inout SplitMix64
  ) -> WorkerProfile {
    var workerPolicy = generator.chance(80) ? policy : .random(using: &generator)
    workerPolicy.memory = policy.memory
    var profile = WorkerProfile(
      policy: workerPolicy, importance: generator.pick([0, 0, 50, 100]),
      canShed: generator.chance(60),
      canAnswer: generator.chance(40), announcesReadiness: generator.chance(50))
    profile.mayBeTerminated = !generator.chance(10)
    var other = generator.separated()
    // The workers may form circles, wake themselves, or not exist.
    if other.chance(50) {
      profile.wakeWith = (0..<2).map { _ in WorkerID("w\(other.next() % 6)") }
    }
    if other.chance(10) { profile.policy.terminate.forMemory = false }
    if other.chance(20) {
      profile.policy.terminate.ask = other.pick([.milliseconds(200), .seconds(5)])
    }
    if other.chance(40) { profile.footprintLimits = .random(using: &other) }
    return profile
  }
}

extension FootprintLimits {
  /// The limits may be in any order. A reload may bring limits that the reader of the file refuses.
  static func random(using generator: inout SplitMix64) -> FootprintLimits {
    FootprintLimits(
      warn: generator.pick([nil, .kilobytes(100), .megabytes(10)]),
      hibernate: generator.pick([nil, .megabytes(4), .megabytes(30)]),
      restart: generator.pick([nil, .megabytes(14), .megabytes(60)]),
      sustainedFor: generator.pick([.zero, .seconds(2), .seconds(10)]))
  }
}
