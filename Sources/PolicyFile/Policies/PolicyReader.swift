import Policy

/// Reads the keys of a policy over a base, and then checks the relations between keys.
struct PolicyReader {
  enum Scope {
    /// A policy file, with all keys.
    case policy
    /// Overrides of a policy, with all keys except the name.
    case overrides
    /// Overrides for one worker, without the keys that are decided for the machine as a whole.
    case worker
  }

  var scope: Scope

  func read(_ top: MappingReader, over base: LifecyclePolicy) -> LifecyclePolicy {
    let policy = keys(top, over: base)
    PolicyChecks(policy: policy, readers: [top], isOfWorker: scope == .worker).run()
    return policy
  }

  /// Reads the keys without the checks, for texts that are laid over each other before they are
  /// checked.
  func keys(_ top: MappingReader, over base: LifecyclePolicy) -> LifecyclePolicy {
    var policy = base
    top.scope = scope
    PolicyKeys.all.read(top, into: &policy)
    top.finish()
    return policy
  }
}
