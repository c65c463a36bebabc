/// The running processes that `adopt NAME` manages from now on. Either `pid` (`--pid`) or `cgroup`
/// (`--unit`, `--cgroup`) is set.
public struct AdoptionSpecification: Codable, Hashable, Sendable {
  /// The process to adopt, with its descendants.
  public var pid: Int32?
  /// The start time of the process in the kernel's ticks (proc_pid_stat(5)); nil if it isn't known.
  /// If another process has the pid by now, the request is refused.
  public var startTime: UInt64?
  /// A directory of the cgroup2 tree, or the name of a systemd unit.
  public var cgroup: String?
  public var importance: Int?
  /// True if it may be terminated when memory is short. Otherwise it is only suspended and
  /// hibernated.
  public var mayBeTerminated: Bool?
  /// The name or path of a policy; nil means the machine's policy.
  public var policy: String?
  /// Settings that replace those of the policy, each as `KEY=VALUE`.
  public var settings: [String]?
  /// True for shadow mode: decisions about it are logged, not applied.
  public var shadow: Bool?
  /// The names of adopted workers. When one of them or this one wakes, the others wake at the same
  /// time.
  public var wakeWith: [String]?
  /// The health checks that are answered while it sleeps, without waking it. Each is a port, or a
  /// port and a path, such as `8081/healthz`.
  public var healthChecks: [String]?

  public init(
    pid: Int32? = nil, startTime: UInt64? = nil, cgroup: String? = nil, importance: Int? = nil,
    mayBeTerminated: Bool? = nil, policy: String? = nil, settings: [String]? = nil,
    shadow: Bool? = nil, wakeWith: [String]? = nil, healthChecks: [String]? = nil
  ) {
    self.pid = pid
    self.startTime = startTime
    self.cgroup = cgroup
    self.importance = importance
    self.mayBeTerminated = mayBeTerminated
    self.policy = policy
    self.settings = settings
    self.shadow = shadow
    self.wakeWith = wakeWith
    self.healthChecks = healthChecks
  }
}

/// A process that a rule of `adopt:` matches (`adopt --dry-run`).
public struct AdoptionFinding: Codable, Hashable, Sendable {
  /// The rule's name.
  public var rule: String
  /// The rule's mode, `shadow` or `manage`.
  public var mode: String
  /// The worker's name. It is also set if the worker isn't adopted yet.
  public var worker: String
  public var pid: Int32
  /// The footprint of the process and its descendants, in bytes; nil if it may not be measured.
  public var footprint: Int64?
  /// The number of processes.
  public var processes: Int
  public var command: [String]
  /// What happens to the process, or why nothing does.
  public var result: CodedText

  public init(
    rule: String, mode: String, worker: String, pid: Int32, footprint: Int64?, processes: Int,
    command: [String], result: CodedText
  ) {
    self.rule = rule
    self.mode = mode
    self.worker = worker
    self.pid = pid
    self.footprint = footprint
    self.processes = processes
    self.command = command
    self.result = result
  }
}

/// The output of `adopt --dry-run --json`.
public struct AdoptionPreviewReport: Codable, Hashable, Sendable {
  /// The number of rules.
  public var rules: Int
  public var findings: [AdoptionFinding]

  public init(rules: Int, findings: [AdoptionFinding]) {
    self.rules = rules
    self.findings = findings
  }

  public var text: String {
    "the rules match \(findings.count) \(findings.count == 1 ? "process" : "processes")"
  }
}
