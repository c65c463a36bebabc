import JSONLines
import Lifecycle
import Policy

/// A policy under which workers keep the keys of their own: these are laid over it, as they were over the policy
/// that they were written for.
public struct PolicyOverlay: Sendable {
  private let policy: LifecyclePolicy
  private let tree: JSON

  public init(_ policy: LifecyclePolicy) throws {
    self.policy = policy
    tree = try JSON(encoding: policy)
  }

  /// - Parameter base: the policy over which the profile's own keys were laid.
  public func policy(of profile: WorkerProfile, over base: LifecyclePolicy) -> LifecyclePolicy {
    // A policy that can't be written or read again stays as it is.
    guard let own = try? JSON(encoding: profile.policy), let base = try? JSON(encoding: base),
      var result = try? tree.overlaid(with: own.difference(from: base))
        .decode(LifecyclePolicy.self)
    else { return profile.policy }
    // A label, which isn't the worker's own.
    result.name = policy.name
    return result
  }
}
