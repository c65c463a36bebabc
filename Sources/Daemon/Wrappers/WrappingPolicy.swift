import Policy

extension LifecyclePolicy {
  /// For helpers of an editor or agent host, one in each wrapper. None is ever terminated for
  /// memory: to its host that would be a crash. It needs no cool-down: `idle_after` and
  /// `hibernate.after` pass between two hibernations in any case.
  public static func wrapping() -> LifecyclePolicy {
    var policy = LifecyclePolicy(name: "wrap")
    policy.foreground = ForegroundRules(
      mode: .activity, max: nil, idleAfter: .seconds(300), cpuBelow: 2)
    policy.background.suspendAfter = .seconds(10)
    policy.hibernate = HibernationRules(
      maxFootprint: nil, minFootprint: .megabytes(4), after: .seconds(300),
      onlyIfFasterThanRelaunch: false, cooldown: .zero,
      disk: DiskRules(budget: .gigabytes(16), minFreePercent: 5, dailyWrites: .gigabytes(50)))
    // Without `--shed-signal` or `--shed-command` warnings have no effect.
    policy.ladder = Ladder(
      warning: [.hibernate], urgent: [.hibernate, .warn], critical: [.hibernate, .warn])
    return policy
  }
}
