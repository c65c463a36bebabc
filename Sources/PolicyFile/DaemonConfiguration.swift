import Policy

/// The contents of `dormouse.yaml` and its `conf.d`. Paths are relative to the current directory or
/// absolute, like the file's own path.
public struct DaemonConfiguration: Hashable, Sendable {
  /// The policy for the machine, with `policy_overrides` applied.
  public var policy: LifecyclePolicy
  /// The workers in the order of the files.
  public var workers: [WorkerConfiguration]
  /// The rules of `adopt:`, in the order of the files. The first that matches a process decides.
  public var adoption: [AdoptionRule] = []
  /// The state directory. `nil`: the default directory.
  public var stateDirectory: String?
  /// The path of the control socket. `nil`: the default path. It has at most 107 bytes, the
  /// kernel's limit.
  public var socket: String?
  /// The file and the line of each value.
  public var origins = Origins()
  /// The file to which `run --save` adds workers, whether or not it exists. `nil`: there is none.
  public var file: String?
  public var journal = JournalConfiguration()
  /// The directories in which policies are searched by name.
  public var library = PolicyLibrary.builtIn
  /// The commands of `on:` at the top of the file.
  public var hooks = Hooks()

  public init(
    policy: LifecyclePolicy = LifecyclePolicy(), workers: [WorkerConfiguration] = []
  ) {
    self.policy = policy
    self.workers = workers
  }
}
