import Policy
import YAML

/// Reads the keys of a policy over a base, then checks what concerns more than one key.
struct PolicyReader {
  enum Scope {
    /// A policy file: all keys.
    case policy
    /// Laid over a policy: all but its name.
    case overrides
    /// For one worker: what isn't decided for the machine as a whole.
    case worker
  }

  var scope: Scope
  /// What `extends` leads to; `nil`: there is no other file to read.
  var extended: ExtendedPolicy?

  func read(_ top: MappingReader, over base: LifecyclePolicy) -> LifecyclePolicy {
    let policy = keys(top, over: base)
    PolicyChecks(policy: policy, readers: [top], isOfWorker: scope == .worker).run()
    return policy
  }

  /// The keys alone, for texts that are laid over each other before they are checked.
  func keys(_ top: MappingReader, over base: LifecyclePolicy) -> LifecyclePolicy {
    var policy = base
    top.scope = scope
    if scope == .policy, let reference = top.read("extends", as: .extended),
      let found = extended?.load(reference, for: top)
    {
      policy = found.policy
      policy.name = base.name
    }
    PolicyKeys.all.read(top, into: &policy)
    top.finish()
    return policy
  }
}

extension Converter where Value == String {
  /// The value of `extends`. Its path is relative to the file that has it.
  fileprivate static var extended: Converter {
    .text("the name of a policy, or the path of a policy file").checked { text in
      text.isEmpty ? .wrongKind : homeProblem(text)
    }
  }
}
