import JSONLines
import Lifecycle
import Policy

/// A policy under which workers keep their own keys. These are laid over it, as they were laid over
/// the policy for which they were written.
public struct PolicyOverlay: Sendable {
  private let policy: LifecyclePolicy
  private let tree: JSON

  public init(_ policy: LifecyclePolicy) throws {
    self.policy = policy
    tree = try JSON(encoding: policy)
  }

  /// Returns the policy of a worker.
  ///
  /// - Parameter base: the policy over which the profile's own keys were laid.
  public func policy(of profile: WorkerProfile, over base: LifecyclePolicy) -> LifecyclePolicy {
    guard let workerPolicy = try? JSON(encoding: profile.policy),
      // If the policy or its base can't be written or read again, the policy stays as it is.
      let base = try? JSON(encoding: base),
      var result = try? tree.overlaid(with: workerPolicy.difference(from: base))
        .decode(LifecyclePolicy.self)
    else { return profile.policy }
    // The name is a label of the whole policy, not a key of the worker.
    result.name = policy.name
    return result
  }
}
