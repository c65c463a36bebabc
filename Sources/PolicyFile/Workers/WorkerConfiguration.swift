import Policy

/// One entry of `workers:`.
public struct WorkerConfiguration: Hashable, Sendable {
  /// 1–64 letters, digits, `-`, `_` and `.`.
  public var name: String
  /// Program and arguments; never empty. The program isn't looked up yet.
  public var command: [String]
  public var directory: String
  /// What is added to the daemon's own environment: `env_file` with `environment` laid over it,
  /// variables expanded.
  public var environment: [String: String]
  /// `env_file` of a worker with a `user`: absolute paths, read with that user's rights at each launch. Their
  /// variables are overridden by those of `environment`.
  public var environmentFiles: [String]
  /// Name or number; `nil`: the daemon's own.
  public var user: String?
  /// Name or number; `nil`: the user's, or the daemon's own.
  public var group: String?
  /// Groups of workers that it belongs to, for the verbs (`stop @bots`); no name twice. The entry's name is one of
  /// them if it declares several instances.
  public var groups: [String]
  /// Permission bits that its new files don't get, 0–0o777; `nil`: the daemon's own.
  public var umask: UInt32?
  public var limits: ResourceLimits
  /// 0–100; raises the worker within the band of its state.
  public var importance: Int
  /// Launched when the daemon starts.
  public var autostart: Bool
  /// In the order of the file; no name twice, no circles.
  public var dependsOn: [Dependency]
  /// How the worker is asked to give memory back; `nil`: only by what it announces itself.
  public var shed: Shed?
  /// How the worker says that it is ready; `nil`: it counts as ready once launched.
  public var readiness: Readiness?
  /// It gets `NOTIFY_SOCKET` (sd_notify(3)), although no other key here needs it.
  public var notify: Bool
  /// `WATCHDOG=1` comes at least this often while it runs, or it is ended; `nil`: it isn't expected.
  public var watchdog: Duration?
  /// How many descriptors it may store with the daemon (`FDSTORE=1`), over its restarts.
  public var fdstore: Int
  /// The worker is restarted when it fails; `nil`: there is no probe.
  public var liveness: Probe?
  public var restart: RestartRules
  /// Runs before the stop signal, with half of the grace at most; `nil`: only the signal asks it to end.
  public var stopCommand: [String]?
  /// Asks it to end. How long it may take is `policy.terminate.grace`.
  public var stopSignal: Int32
  /// The signal that makes it read its configuration again (`dormouse reload NAME`); `nil`: it can't.
  public var reloadSignal: Int32?
  public var output: WorkerOutput
  /// Sockets that the daemon opens for it; none that conflict.
  public var listen: [ListenSocket]
  /// When it is woken, in local time.
  public var wakeAt: [CalendarSchedule]
  /// The workers that are woken with it, if they sleep; no name twice, circles are allowed.
  public var wakeWith: [String]
  public var healthChecksWhileAsleep: [AsleepAnswer]
  /// `on:`
  public var hooks: Hooks
  /// No key: what `run` has set of these, each `KEY=VALUE`, because no file declares the worker.
  public var settings: [String] = []
  /// The machine's policy with this worker's overrides.
  @SharedPolicy public var policy: LifecyclePolicy

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
    self.environmentFiles = []
    self.groups = []
    self.limits = ResourceLimits()
    self.importance = importance
    self.autostart = autostart
    self.dependsOn = []
    self.shed = shed
    self.readiness = readiness
    self.notify = false
    self.fdstore = 0
    self.restart = RestartRules()
    self.stopSignal = stopSignal
    self.output = WorkerOutput()
    self.listen = []
    self.wakeAt = []
    self.wakeWith = []
    self.healthChecksWhileAsleep = []
    self.hooks = Hooks(directory: directory)
    self.policy = policy
  }

  /// It talks with the daemon as sd_notify(3) says. Programs behave differently where `NOTIFY_SOCKET` is
  /// set, and so only a worker whose configuration asks for it gets one.
  public var hasNotifySocket: Bool {
    notify || readiness == .notify || watchdog != nil || fdstore > 0
  }

  /// `shed:`
  public enum Shed: Hashable, Sendable {
    /// A signal's number; only sent to a worker that catches it.
    case signal(Int32)
    case command([String])
    /// A request over HTTP; an answer from 200 to 299 says that it is done.
    case http(Probe.HTTPRequest)
    /// `MEMORY_PRESSURE_WATCH` only.
    case notify
  }

  /// `readiness:`
  public enum Readiness: Hashable, Sendable {
    /// `READY=1` at `NOTIFY_SOCKET`.
    case notify
    /// A line at this descriptor of the worker's, as s6 has it.
    case notificationDescriptor(Int32)
    /// A connection to this port of the loopback interface succeeds.
    case tcp(UInt16)
    /// A line of its output holds this text.
    case logLine(String)
    /// A line of its output matches this extended regular expression of POSIX, which compiles.
    case logPattern(String)
    case probe(Probe)
  }
}
