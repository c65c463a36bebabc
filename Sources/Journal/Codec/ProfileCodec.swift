import JSONLines
import Lifecycle
import Policy

/// Writes policies and profiles as trees: only their differences from the policy that a segment's
/// header holds as a whole.
public struct ProfileCodec: Sendable {
  /// The header's policy.
  let base: JSON

  public init(base: LifecyclePolicy) throws { self.base = try JSON(encoding: base) }

  /// Reads the policy of a header. A key that only a newer version has gets its default, because it
  /// had no effect when the header was written.
  init(header: JSON) throws {
    base = try JSON(encoding: LifecyclePolicy()).overlaid(with: header)
    _ = try base.decode(LifecyclePolicy.self)
  }

  func policy() throws -> LifecyclePolicy { try base.decode(LifecyclePolicy.self) }

  func tree(_ policy: LifecyclePolicy) throws -> JSON {
    try JSON(encoding: policy).difference(from: base)
  }

  func policy(_ tree: JSON) throws -> LifecyclePolicy {
    try base.overlaid(with: tree).decode(LifecyclePolicy.self)
  }

  func tree(_ profile: WorkerProfile) throws -> JSON { shortened(try JSON(encoding: profile)) }

  func profile(_ tree: JSON) throws -> WorkerProfile {
    try lengthened(tree).decode(WorkerProfile.self)
  }

  /// Replaces the policy in a profile's tree by its difference from the header's.
  func shortened(_ profile: JSON) -> JSON {
    guard let policy = profile["policy"] else { return profile }
    var result = profile
    result.set("policy", policy.difference(from: base))
    return result
  }

  func lengthened(_ profile: JSON) -> JSON {
    guard let policy = profile["policy"] else { return profile }
    var result = profile
    result.set("policy", base.overlaid(with: policy))
    return result
  }
}
