import Policy

/// A difference between two configurations of a worker.
public struct WorkerChange: Hashable, Sendable {
  /// A key of the worker, or the path of a key of its policy.
  public var key: String
  /// The old value as text. nil: one of the values isn't short.
  public var old: String?
  /// The new value as text. nil: one of the values isn't short.
  public var new: String?
  /// True if the change applies at the next launch of the worker; otherwise it applies at once.
  public var atLaunch: Bool

  init(_ key: String, _ values: (old: String, new: String)? = nil, atLaunch: Bool = false) {
    self.key = key
    self.atLaunch = atLaunch
    (old, new) = (values?.old, values?.new)
  }

  /// The change as text: `importance 0 → 7`.
  public var text: String {
    guard let old, let new else { return key }
    return "\(key) \(old) → \(new)"
  }
}

extension WorkerConfiguration {
  /// Returns the differences from an older configuration of the same worker.
  ///
  /// - Parameter machine: the policy for all workers, before and after. A change that is the same
  ///   there isn't listed for each worker.
  public func changes(
    from old: WorkerConfiguration, machine: (old: LifecyclePolicy, new: LifecyclePolicy)? = nil
  ) -> [WorkerChange] {
    if old == self { return [] }
    var earlier = old
    // The daemon enforces the limits of the footprint itself, and applies them at once.
    earlier.limits.footprint = limits.footprint
    let footprint =
      old.limits.footprint == limits.footprint ? [] : [WorkerChange("limits.footprint")]
    let keys = keyChanges(from: earlier)
    let values = PolicyFile.differences(from: old.policy, to: policy, besideThoseOf: machine)
      .map { WorkerChange($0.key, ($0.left, $0.right)) }
    return values + keys.filter { !$0.atLaunch } + footprint + keys.filter(\.atLaunch)
  }

  private func keyChanges(from old: WorkerConfiguration) -> [WorkerChange] {
    WorkerKeys.all.compactMap { key in
      let (before, after) = (key.write(old), key.write(self))
      if before?.flow == after?.flow { return nil }
      guard !key.isAtLaunch, case .plain(let left)? = before, case .plain(let right)? = after else {
        return WorkerChange(key.name, atLaunch: key.isAtLaunch)
      }
      return WorkerChange(key.name, (left, right))
    }
  }
}

extension PolicyFile {
  /// Describes the change from one policy to another in one line. `nil`: there is no difference.
  public static func summary(from old: LifecyclePolicy, to new: LifecyclePolicy) -> String? {
    let changed = differences(from: old, to: new)
    guard old != new else { return nil }
    if old.name != new.name {
      return "policy \(old.name) → \(new.name) (\(changed.count) values)"
    }
    let shown = changed.prefix(6).map(\.text)
    let more = changed.count > shown.count ? " and \(changed.count - shown.count) more" : ""
    return "policy \(new.name): \(shown.joined(separator: ", "))\(more)"
  }
}
