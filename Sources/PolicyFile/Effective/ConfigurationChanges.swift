import Policy

/// A difference between two configurations of a worker.
public struct WorkerChange: Hashable, Sendable {
  /// A worker's key, or a policy's with its path.
  public var key: String
  /// The values, where both are short.
  public var old: String?
  public var new: String?
  /// It applies when the worker is started next; otherwise at once.
  public var atLaunch: Bool

  init(_ key: String, _ values: (old: String, new: String)? = nil, atLaunch: Bool = false) {
    self.key = key
    self.atLaunch = atLaunch
    (old, new) = (values?.old, values?.new)
  }

  /// `importance 0 → 7`
  public var text: String {
    guard let old, let new else { return key }
    return "\(key) \(old) → \(new)"
  }
}

extension WorkerConfiguration {
  /// The differences from an older configuration of the same worker.
  ///
  /// - Parameter machine: the policy for all, before and after: a change that is the same there isn't listed
  ///   for each worker.
  public func changes(
    from old: WorkerConfiguration, machine: (old: LifecyclePolicy, new: LifecyclePolicy)? = nil
  ) -> [WorkerChange] {
    policyChanges(from: old, machine) + changesAtOnce(from: old) + changesAtLaunch(from: old)
  }

  private func policyChanges(
    from old: WorkerConfiguration, _ machine: (old: LifecyclePolicy, new: LifecyclePolicy)?
  ) -> [WorkerChange] {
    let everywhere = Set(
      machine.map { PolicyFile.differences(from: $0.old, to: $0.new) } ?? [])
    return PolicyFile.differences(from: old.policy, to: policy)
      .filter { !everywhere.contains($0) }
      .map { WorkerChange($0.path, ($0.left ?? "none", $0.right ?? "none")) }
  }

  private func changesAtOnce(from old: WorkerConfiguration) -> [WorkerChange] {
    var result: [WorkerChange] = []
    if old.importance != importance {
      result.append(WorkerChange("importance", ("\(old.importance)", "\(importance)")))
    }
    if old.groups != groups { result.append(WorkerChange("groups")) }
    if old.shed != shed { result.append(WorkerChange("shed")) }
    if old.stopCommand != stopCommand { result.append(WorkerChange("stop_command")) }
    if old.stopSignal != stopSignal { result.append(WorkerChange("stop_signal")) }
    if old.reloadSignal != reloadSignal { result.append(WorkerChange("reload_signal")) }
    if old.autostart != autostart {
      result.append(WorkerChange("autostart", ("\(old.autostart)", "\(autostart)")))
    }
    if old.liveness != liveness { result.append(WorkerChange("liveness")) }
    if old.restart != restart { result.append(WorkerChange("restart")) }
    if old.wakeAt != wakeAt { result.append(WorkerChange("wake_at")) }
    if old.wakeWith != wakeWith { result.append(WorkerChange("wake_with")) }
    if old.healthChecksWhileAsleep != healthChecksWhileAsleep {
      result.append(WorkerChange("health_checks_while_asleep"))
    }
    if old.limits.footprint != limits.footprint { result.append(WorkerChange("limits.footprint")) }
    if old.hooks != hooks { result.append(WorkerChange("on")) }
    return result
  }

  private func changesAtLaunch(from old: WorkerConfiguration) -> [WorkerChange] {
    var keys: [String] = []
    if old.command != command { keys.append("command") }
    if old.directory != directory { keys.append("directory") }
    if old.environment != environment { keys.append("environment") }
    if old.environmentFiles != environmentFiles { keys.append("env_file") }
    if old.user != user { keys.append("user") }
    if old.group != group { keys.append("group") }
    if old.umask != umask { keys.append("umask") }
    // The daemon enforces those of the footprint, and applies them at once.
    var limits = limits
    limits.footprint = old.limits.footprint
    if old.limits != limits { keys.append("limits") }
    if old.dependsOn != dependsOn { keys.append("depends_on") }
    if old.readiness != readiness { keys.append("readiness") }
    if old.notify != notify { keys.append("notify") }
    if old.fdstore != fdstore { keys.append("fdstore") }
    if old.watchdog != watchdog { keys.append("watchdog") }
    if old.output != output { keys.append("output") }
    if old.listen != listen { keys.append("listen") }
    return keys.map { WorkerChange($0, atLaunch: true) }
  }
}

extension PolicyFile {
  /// One line on the step from one policy to another; `nil` where there is no difference.
  public static func summary(from old: LifecyclePolicy, to new: LifecyclePolicy) -> String? {
    let changed = differences(from: old, to: new)
    guard old != new else { return nil }
    if old.name != new.name {
      return "policy \(old.name) → \(new.name) (\(changed.count) values)"
    }
    let shown = changed.prefix(6).map {
      "\($0.path) \($0.left ?? "none") → \($0.right ?? "none")"
    }
    let more = changed.count > shown.count ? " and \(changed.count - shown.count) more" : ""
    return "policy \(new.name): \(shown.joined(separator: ", "))\(more)"
  }
}
