import Policy

extension PolicyFile {
  /// One value of a policy, as a file has it.
  public struct Value: Hashable, Sendable {
    /// The path with dots: `hibernate.disk.budget`.
    public var path: String
    /// The value as text, such as `2GB`, `[band, footprint]` or `{ available_below: 10% }`.
    public var text: String
  }

  /// Returns every value of a policy, in the order of the documentation. A pressure level, a ladder
  /// level and any other list is one value, because it is replaced as a whole.
  public static func values(of policy: LifecyclePolicy) -> [Value] {
    PolicyKeys.all.leaves().compactMap { path, key in
      key.write(policy).map { Value(path: path, text: $0.flow) }
    }
  }
}

/// One value of an applied policy, and its origin.
public struct EffectiveValue: Hashable, Sendable {
  public var path: String
  public var text: String
  public var origin: Origin
}

extension LoadedPolicy {
  /// Returns every value with its origin.
  public func effective() -> [EffectiveValue] {
    PolicyFile.values(of: policy).map {
      EffectiveValue(path: $0.path, text: $0.text, origin: origins.origin(of: $0.path))
    }
  }
}

extension DaemonConfiguration {
  /// Returns every value of the policy that applies to a worker, or to the machine, with its
  /// origin.
  ///
  /// - Returns: `nil` if there is no such worker.
  public func effective(worker name: String? = nil) -> [EffectiveValue]? {
    guard let name else { return LoadedPolicy(policy: policy, origins: origins).effective() }
    guard let worker = workers.first(where: { $0.name == name }) else { return nil }
    return PolicyFile.values(of: worker.policy).map {
      let origin = origins.origin(of: $0.path, worker: name)
      return EffectiveValue(path: $0.path, text: $0.text, origin: origin)
    }
  }
}
