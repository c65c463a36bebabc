import Policy

/// One entry of `workers:`.
public struct WorkerConfiguration: Hashable, Sendable {
  /// The name: 1–64 letters, digits, `-`, `_` and `.`.
  public var name: String
  /// The program and its arguments; never empty. The program hasn't been searched for yet.
  public var command: [String]
  /// The working directory.
  public var directory: String
  /// The variables that are added to the daemon's own environment: `env_file` with `environment`
  /// laid over it, and with variables expanded.
  public var environment: [String: String]
  /// The files of `env_file` of a worker with a `user`: absolute paths, which are read with that
  /// user's rights at each launch. The variables of `environment` override theirs.
  public var environmentFiles: [String] = []
  /// A user's name or number. `nil`: the daemon's own user.
  public var user: String?
  /// A group's name or number. `nil`: the user's group, or the daemon's own.
  public var group: String?
  /// The groups of workers to which it belongs, for the verbs (`stop @bots`). No name is there
  /// twice. If the entry declares several instances, the entry's name is one of them.
  public var groups: [String] = []
  /// The permission bits that its new files don't get, 0–0o777. `nil`: the daemon's own umask.
  public var umask: UInt32?
  public var limits = ResourceLimits()
  /// The importance, 0–100. It raises the worker within the band of its state.
  public var importance: Int
  /// True if it is launched when the daemon starts.
  public var autostart: Bool
  /// The dependencies in the order of the file. No name is there twice, and there are no circles.
  public var dependsOn: [Dependency] = []
  /// How the worker is asked to free memory. `nil`: only in the ways that it announces itself.
  public var shed: Shed?
  /// How the worker reports that it is ready. `nil`: it counts as ready once it is launched.
  public var readiness: ReadinessRule?
  /// True if it gets `NOTIFY_SOCKET` (sd_notify(3)) although no other key here needs it.
  public var notify = false
  /// The maximum interval between two `WATCHDOG=1` while it runs. A worker that exceeds it is
  /// ended. `nil`: none is expected.
  public var watchdog: Duration?
  /// The maximum number of descriptors that it may store with the daemon (`FDSTORE=1`), across its
  /// restarts.
  public var fdstore = 0
  /// The probe whose failure restarts the worker. `nil`: there is none.
  public var liveness: Probe?
  public var restart = RestartRules()
  /// A command that runs before the stop signal, for at most half of the grace. `nil`: only the
  /// signal asks the worker to end.
  public var stopCommand: [String]?
  /// The signal that asks it to end. `policy.terminate.grace` is the time that it has for this.
  public var stopSignal: Int32
  /// The signal that makes it read its configuration again (`dormouse reload NAME`). `nil`: it has
  /// none.
  public var reloadSignal: Int32?
  /// The log file of the worker's output.
  public var output = WorkerOutput()
  /// The sockets that the daemon opens for it. None of them conflict.
  public var listen: [ListenSocket] = []
  /// The times at which it is woken, in local time.
  public var wakeAt: [CalendarSchedule] = []
  /// The workers that are woken with it if they sleep. No name is there twice. Circles are allowed.
  public var wakeWith: [String] = []
  /// The health checks that the daemon answers while the worker sleeps.
  public var healthChecksWhileAsleep: [AsleepAnswer] = []
  /// The commands of `on:`.
  public var hooks: Hooks
  /// The settings by which `run` started the worker, each as `KEY=VALUE`. This is no key: no file
  /// declares such a worker.
  public var settings: [String] = []
  /// The machine's policy with this worker's overrides.
  @SharedPolicy public var policy: LifecyclePolicy

  public init(
    name: String, command: [String], directory: String = ".",
    environment: [String: String] = [:], importance: Int = 0, autostart: Bool = true,
    shed: Shed? = nil, readiness: ReadinessRule? = nil, stopSignal: Int32 = 15,
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
    self.hooks = Hooks(directory: directory)
    self.policy = policy
  }

  /// True if it communicates with the daemon by sd_notify(3). Programs behave differently if
  /// `NOTIFY_SOCKET` is set, so only a worker whose configuration asks for it gets one.
  public var hasNotifySocket: Bool {
    notify || readiness == .notify || watchdog != nil || fdstore > 0
  }

  /// The section `shed:`.
  public enum Shed: Hashable, Sendable {
    /// A signal's number. It is sent only to a worker that catches it.
    case signal(Int32)
    case command([String])
    /// A request over HTTP. An answer from 200 to 299 means that the worker is done.
    case http(Probe.HTTPRequest)
    /// `MEMORY_PRESSURE_WATCH` only.
    case notify
  }
}
