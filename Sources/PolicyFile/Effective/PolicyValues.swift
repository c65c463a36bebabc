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
