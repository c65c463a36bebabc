/// `adopt NAME --pid N`, or `--unit` and `--cgroup`: what runs already. One of the two is set.
public struct AdoptionSpecification: Codable, Hashable, Sendable {
  /// It and its descendants.
  public var pid: Int32?
  /// When it was started, in the kernel's ticks (proc_pid_stat(5)): a process that has got its number since is refused.
  /// nil: not known.
  public var startTime: UInt64?
  /// A directory of the cgroup2 tree, or a unit's name.
  public var cgroup: String?
  public var importance: Int?
  /// It may be terminated when memory runs out; else it is only ever suspended and hibernated.
  public var mayBeTerminated: Bool?
  /// A policy's name or path; nil: the machine's.
  public var policy: String?
  /// Values that replace those of the policy, each `KEY=VALUE`.
  public var settings: [String]?
  /// Decisions about it are logged, not applied.
  public var shadow: Bool?
  /// Adopted workers: when one of them or this one wakes, the others wake at the same time.
  public var wakeWith: [String]?
  /// Answered while it sleeps, without waking it: each a port, or a port and a path, such as `8081/healthz`.
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

/// `adopt --dry-run`: a process that a rule of `adopt:` matches.
public struct AdoptionFinding: Codable, Hashable, Sendable {
  /// The rule's name, and `shadow` or `manage`.
  public var rule: String
  public var mode: String
  /// The worker's name, also of one that isn't adopted yet.
  public var worker: String
  public var pid: Int32
  /// With all its descendants, in bytes; nil where it may not be measured.
  public var footprint: Int64?
  public var processes: Int
  public var command: [String]
  /// What happens to it, or why nothing does.
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

/// `adopt --dry-run --json`.
public struct AdoptionPreviewReport: Codable, Hashable, Sendable {
  /// How many rules there are.
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
