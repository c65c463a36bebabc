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
    if old == self { return [] }
    var earlier = old
    // The daemon enforces those of the footprint, and applies them at once.
    earlier.limits.footprint = limits.footprint
    let footprint =
      old.limits.footprint == limits.footprint ? [] : [WorkerChange("limits.footprint")]
    return policyChanges(from: old, machine) + ownChanges(from: earlier, atLaunch: false)
      + footprint + ownChanges(from: earlier, atLaunch: true)
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

  private func ownChanges(from old: WorkerConfiguration, atLaunch: Bool) -> [WorkerChange] {
    WorkerKeys.all.filter { $0.isAtLaunch == atLaunch }.compactMap { key in
      let (before, after) = (key.write(old), key.write(self))
      if before?.flow == after?.flow { return nil }
      guard !atLaunch, case .plain(let left)? = before, case .plain(let right)? = after else {
        return WorkerChange(key.name, atLaunch: atLaunch)
      }
      return WorkerChange(key.name, (left, right))
    }
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
