import Policy

extension PolicyFile {
  /// The canonical YAML of a policy: every key, in the order of the documentation, without
  /// comments. Reading it gives the policy back.
  public static func render(_ policy: LifecyclePolicy) -> String {
    lines(PolicyKeys.all, of: policy).joined(separator: "\n") + "\n"
  }

  /// A section has a line for each of its keys, and each value one line.
  private static func lines(
    _ keys: [Key<LifecyclePolicy>], of policy: LifecyclePolicy
  ) -> [String] {
    keys.flatMap { key in
      if let parts = key.parts {
        return ["\(key.name):"] + lines(parts, of: policy).map { "  \($0)" }
      }
      return key.write(policy).map { ["\(key.name): \($0.flow)"] } ?? []
    }
  }
}
