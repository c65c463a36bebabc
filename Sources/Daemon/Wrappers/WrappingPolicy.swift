import Policy

extension LifecyclePolicy {
  /// The policy for helpers of an editor or agent host, one in each wrapper. None is ever
  /// terminated for lack of memory, because its host would see a crash. Each is hibernated within
  /// two minutes of its last use. No cool-down is needed: `idle_after` and `hibernate.after` pass
  /// between two hibernations, unless the helper's own timer woke it.
  public static func wrapping() -> LifecyclePolicy {
    var policy = LifecyclePolicy(name: "wrap")
    policy.foreground = ForegroundRules(
      mode: .activity, max: nil, idleAfter: .seconds(60), cpuBelow: 2)
    policy.background.suspendAfter = .seconds(10)
    // A request that waits for a time continues after it.
    policy.background.wakeForTimers = .seconds(45)
    policy.hibernate.maxFootprint = nil
    policy.hibernate.minFootprint = .megabytes(4)
    policy.hibernate.after = .seconds(40)
    policy.hibernate.onlyIfFasterThanRelaunch = false
    policy.hibernate.cooldown = .zero
    policy.hibernate.disk.budget = .gigabytes(16)
    policy.hibernate.disk.dailyWrites = .gigabytes(50)
    // A helper whose host pings it is never idle.
    policy.trim.after = .seconds(120)
    // Idle times as short as these double if they are too short for a server.
    policy.earlyWake = EarlyWakeRules(
      within: .seconds(30), halvesEvery: .seconds(3600), maxIdle: .seconds(600))
    // Warnings have no effect without `--shed-signal` or `--shed-command`.
    policy.ladder = Ladder(
      warning: [.hibernate], urgent: [.hibernate, .warn], critical: [.hibernate, .warn])
    return policy
  }
}
