import Policy

extension PolicyFile {
  /// The canonical YAML of a policy: every key, in the order of the documentation, without
  /// comments. Reading it gives the policy back.
  public static func render(_ policy: LifecyclePolicy) -> String {
    let budget =
      switch policy.memory {
      case .host: "host"
      case .device(let size): size.policyText
      }
    // One by one: the type checker of Swift 6.2 doesn't finish a sum of them all.
    var lines = ["name: \(policy.name)", "mode: \(policy.mode.rawValue)"]
    lines += ["memory:", "  budget: \(budget)"]
    lines += pressure(policy.pressure)
    lines += foreground(policy.foreground)
    lines += background(policy.background)
    lines += hibernate(policy.hibernate)
    lines += watchdog(policy.watchdog)
    lines += terminate(policy.terminate)
    lines += earlyWake(policy.earlyWake)
    lines += ladder(policy.ladder)
    return lines.joined(separator: "\n") + "\n"
  }

  private static func pressure(_ rules: PressureRules) -> [String] {
    [
      "pressure:",
      "  warning: \(condition(rules.warning))",
      "  urgent: \(condition(rules.urgent))",
      "  critical: \(condition(rules.critical))",
      "  sustained_for: \(rules.sustainedFor.policyText)",
      "  clear_after: \(rules.clearAfter.policyText)",
      "  warn_once_per: \(rules.warnOncePer.rawValue)",
      "  stalls_count_below: \(percentText(rules.stallsCountBelow))",
      "  terminate_after: \(rules.terminateAfter.policyText)",
      "  swap: \(percentText(rules.swap ?? 0))",
    ]
  }

  private static func condition(_ condition: PressureCondition?) -> String {
    guard let condition else { return "never" }
    var parts: [String] = []
    if let below = condition.availableBelow { parts.append("available_below: \(below.policyText)") }
    var stall: [String] = []
    if let some = condition.someStall { stall.append("some: \(percentText(some.percent))") }
    if let full = condition.fullStall { stall.append("full: \(percentText(full.percent))") }
    if let window = (condition.someStall ?? condition.fullStall)?.window {
      stall.append("window: \(window.policyText)")
      parts.append("stall: { \(stall.joined(separator: ", ")) }")
    }
    // A condition without conditions never holds.
    return parts.isEmpty ? "never" : "{ \(parts.joined(separator: ", ")) }"
  }

  private static func foreground(_ rules: ForegroundRules) -> [String] {
    [
      "foreground:",
      "  mode: \(rules.mode.rawValue)",
      "  max: \(rules.max.map(String.init) ?? "unlimited")",
      "  idle_after: \(rules.idleAfter.policyText)",
      "  cpu_below: \(percentText(rules.cpuBelow))",
    ]
  }

  private static func background(_ rules: BackgroundRules) -> [String] {
    [
      "background:",
      "  shed_deadline: \(rules.shedDeadline.policyText)",
      "  task_limit: \(rules.taskLimit.policyText)",
      "  suspend_after: \(rules.suspendAfter?.policyText ?? "never")",
      "  wake_for_timers: \(rules.wakeForTimers?.policyText ?? "never")",
      "  safe_point:",
      "    file_locks: \(rules.safePoint.fileLocks.policyText)",
      "    hold: \(rules.safePoint.hold.policyText)",
      "    after_launch: \(rules.safePoint.afterLaunch.policyText)",
      "    after_wake: \(rules.safePoint.afterWake.policyText)",
      "  heartbeat: \(heartbeat(rules.heartbeat))",
    ]
  }

  private static func heartbeat(_ rules: HeartbeatRules?) -> String {
    guard let rules else { return "never" }
    let times = "every: \(rules.every.policyText), for: \(rules.lasting.policyText)"
    return "{ \(times), hibernated: \(rules.whileHibernated) }"
  }

  private static func earlyWake(_ rules: EarlyWakeRules) -> [String] {
    [
      "early_wake:",
      "  within: \(rules.within.policyText)",
      "  bonus: \(rules.bonus)",
      "  halves_every: \(rules.halvesEvery.policyText)",
      "  max_idle: \(rules.maxIdle?.policyText ?? "never")",
    ]
  }

  private static func hibernate(_ rules: HibernationRules) -> [String] {
    [
      "hibernate:",
      "  enabled: \(rules.enabled)",
      "  max_footprint: \(rules.maxFootprint?.policyText ?? "unlimited")",
      "  min_footprint: \(rules.minFootprint.policyText)",
      "  after: \(rules.after?.policyText ?? "never")",
      "  at_once_up_to: \(rules.atOnceUpTo?.policyText ?? "never")",
      "  only_if_faster_than_relaunch: \(rules.onlyIfFasterThanRelaunch)",
      "  resume: \(rules.resume.rawValue)",
      "  cooldown: \(rules.cooldown.policyText)",
      "  demote_after: \(rules.demoteAfter?.policyText ?? "never")",
      "  order: [\(rules.order.map(\.rawValue).joined(separator: ", "))]",
      "  disk:",
      "    budget: \(rules.disk.budget.policyText)",
      "    min_free: \(percentText(rules.disk.minFreePercent))",
      "    daily_writes: \(rules.disk.dailyWrites.policyText)",
      "  overlay: \(rules.overlay)",
      "  compression:",
      "    level: \(rules.compressionLevel)",
      "  durability: \(rules.durability.rawValue)",
      "  encrypt: \(rules.encrypt)",
      "  drop_file_pages: \(rules.dropFilePages)",
    ]
  }

  private static func watchdog(_ rules: WatchdogRules) -> [String] {
    [
      "watchdog:",
      "  launch: \(rules.launch.policyText)",
      "  answer: \(rules.answer.policyText)",
      "  max_extension: \(rules.maxExtension.policyText)",
      "  on_timeout: \(rules.onTimeout.rawValue)",
    ]
  }

  private static func terminate(_ rules: TerminationRules) -> [String] {
    [
      "terminate:",
      "  grace: \(rules.grace.policyText)",
      "  settle: \(rules.settle.policyText)",
      "  order: [\(rules.order.map(\.rawValue).joined(separator: ", "))]",
      "  for_memory: \(rules.forMemory)",
      "  ask: \(rules.ask?.policyText ?? "never")",
    ]
  }

  private static func ladder(_ ladder: Ladder) -> [String] {
    ["ladder:"]
      + [PressureLevel.warning, .urgent, .critical].map { level in
        "  \(level.name): [\(ladder[level].map(\.text).joined(separator: ", "))]"
      }
  }
}
