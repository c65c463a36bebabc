import Policy

/// What `dormouse.yaml` says, as a value. Paths in it are relative to the current directory or
/// absolute, as the file's own path was.
public struct DaemonConfiguration: Hashable, Sendable {
  /// The policy in force for the machine, `policy_overrides` applied.
  public var policy: LifecyclePolicy
  /// In the order of the file.
  public var workers: [WorkerConfiguration]
  /// `nil`: the default directory.
  public var stateDirectory: String?
  /// `nil`: the default path. At most 107 bytes, as the kernel wants it.
  public var socket: String?
  public var journal = JournalConfiguration()

  public init(
    policy: LifecyclePolicy = LifecyclePolicy(), workers: [WorkerConfiguration] = [],
    stateDirectory: String? = nil, socket: String? = nil
  ) {
    self.policy = policy
    self.workers = workers
    self.stateDirectory = stateDirectory
    self.socket = socket
  }
}

/// One entry of `workers:`.
public struct WorkerConfiguration: Hashable, Sendable {
  /// 1–64 letters, digits, `-`, `_` and `.`.
  public var name: String
  /// Program and arguments; never empty. The program isn't looked up yet.
  public var command: [String]
  public var directory: String
  /// What is added to the daemon's own environment, variables expanded.
  public var environment: [String: String]
  /// 0–100; raises the worker within the band of its state.
  public var importance: Int
  /// Launched when the daemon starts.
  public var autostart: Bool
  /// How the worker is asked to give memory back; `nil`: only by what it announces itself.
  public var shed: Shed?
  /// How the worker says that it is ready; `nil`: it counts as ready once launched.
  public var readiness: Readiness?
  /// Asks it to end.
  public var stopSignal: Int32
  /// The machine's policy with this worker's overrides.
  public var policy: LifecyclePolicy

  public init(
    name: String, command: [String], directory: String = ".",
    environment: [String: String] = [:], importance: Int = 0, autostart: Bool = true,
    shed: Shed? = nil, readiness: Readiness? = nil, stopSignal: Int32 = 15,
    policy: LifecyclePolicy = LifecyclePolicy()
  ) {
    self.name = name
    self.command = command
    self.directory = directory
    self.environment = environment
    self.importance = importance
    self.autostart = autostart
    self.shed = shed
    self.readiness = readiness
    self.stopSignal = stopSignal
    self.policy = policy
  }

  /// `shed:`
  public enum Shed: Hashable, Sendable {
    /// A signal's number; only sent to a worker that catches it.
    case signal(Int32)
    case command([String])
    /// `MEMORY_PRESSURE_WATCH` only.
    case notify
  }

  /// `readiness:`
  public enum Readiness: Hashable, Sendable {
    /// `READY=1` at `NOTIFY_SOCKET`.
    case notify
    /// A connection to this port of the loopback interface succeeds.
    case tcp(UInt16)
    /// A line of its output holds this text.
    case logLine(String)
  }
}
