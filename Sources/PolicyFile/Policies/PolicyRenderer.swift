import Policy

extension PolicyFile {
  /// Returns the canonical YAML of a policy: every key in the order of the documentation, without
  /// comments. Reading it gives an equal policy.
  public static func render(_ policy: LifecyclePolicy) -> String {
    lines(PolicyKeys.all, of: policy).joined(separator: "\n") + "\n"
  }

  /// Returns a line for each key of a section, with its value on the same line.
  private static func lines(
    _ keys: [Key<LifecyclePolicy>], of policy: LifecyclePolicy
  ) -> [String] {
    keys.flatMap { key in
      if let sectionKeys = key.sectionKeys {
        return ["\(key.name):"] + lines(sectionKeys, of: policy).map { "  \($0)" }
      }
      return key.write(policy).map { ["\(key.name): \($0.flow)"] } ?? []
    }
  }
}
