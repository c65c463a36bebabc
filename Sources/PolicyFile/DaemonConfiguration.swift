import Policy

/// The contents of `dormouse.yaml` and its `conf.d`, as a value. Paths in it are relative to the current
/// directory or absolute, like the file's own path.
public struct DaemonConfiguration: Hashable, Sendable {
  /// The policy in force for the machine, `policy_overrides` applied.
  public var policy: LifecyclePolicy
  /// In the order of the files.
  public var workers: [WorkerConfiguration]
  /// `adopt:`, in the order of the files; the first that matches a process decides.
  public var adoption: [AdoptionRule] = []
  /// `nil`: the default directory.
  public var stateDirectory: String?
  /// `nil`: the default path. At most 107 bytes, which is the kernel's limit.
  public var socket: String?
  /// Which line of which file each value comes from.
  public var origins: Origins
  /// Where `run --save` adds workers, whether or not it exists; `nil`: nowhere.
  public var file: String?
  public var journal = JournalConfiguration()
  /// Where policies are looked up by their name.
  public var library = PolicyLibrary.builtIn
  /// `on:` at the top.
  public var hooks = Hooks()

  public init(
    policy: LifecyclePolicy = LifecyclePolicy(), workers: [WorkerConfiguration] = [],
    stateDirectory: String? = nil, socket: String? = nil, origins: Origins = Origins()
  ) {
    self.policy = policy
    self.workers = workers
    self.stateDirectory = stateDirectory
    self.socket = socket
    self.origins = origins
  }
}
