// What `doctor` found. docs/doctor.md describes it as JSON.

/// One mechanism of the kernel, or one permission, and what came of trying it.
public struct DoctorCheck: Codable, Hashable, Sendable {
  public enum Result: String, Codable, Hashable, Sendable {
    case works
    /// It works, with a loss that `lost` names.
    case limited
    case missing
  }

  public enum Need: String, Codable, Hashable, Sendable {
    /// Without it there is no hibernation, or no daemon.
    case required
    /// Without it something is slower, coarser or less safe.
    case useful
    /// Dormouse doesn't need it; said because people ask.
    case informational
  }

  /// For programs; never changes its meaning.
  public var id: String
  public var name: String
  public var need: Need
  public var result: Result
  /// What was seen when it was tried.
  public var found: String
  /// What doesn't work, or works less well, without it.
  public var lost: String
  /// The command or setting that enables it.
  public var enable: String

  public init(
    id: String, name: String, need: Need, result: Result, found: String, lost: String,
    enable: String
  ) {
    self.id = id
    self.name = name
    self.need = need
    self.result = result
    self.found = found
    self.lost = lost
    self.enable = enable
  }
}

/// What one machine, user and place allow.
public struct DoctorReport: Codable, Hashable, Sendable {
  /// Of Dormouse.
  public var version: String
  /// `uname -r`.
  public var kernel: String
  /// The effective user id that all was tried with.
  public var user: UInt32
  /// In the order of the table.
  public var checks: [DoctorCheck]
  /// A whole hibernation, if one succeeded.
  public var trial: Trial?
  /// What sums it up: `hibernation_works`, `hibernation_missing` or `daemon_does_not_start`.
  public var verdict: CodedText

  /// A whole hibernation of a small shell.
  public struct Trial: Codable, Hashable, Sendable {
    /// How the shell rested: `frozen` in a cgroup, or stopped and `traced`.
    public enum Rest: String, Codable, Hashable, Sendable { case frozen, traced }

    public var rest: Rest
    /// Memory that left RAM, in bytes.
    public var movedBytes: UInt64
    public var imageBytes: UInt64
    public var hibernateSeconds: Double
    public var resumeSeconds: Double

    public init(
      rest: Rest, movedBytes: UInt64, imageBytes: UInt64, hibernateSeconds: Double,
      resumeSeconds: Double
    ) {
      self.rest = rest
      self.movedBytes = movedBytes
      self.imageBytes = imageBytes
      self.hibernateSeconds = hibernateSeconds
      self.resumeSeconds = resumeSeconds
    }
  }

  public init(
    version: String, kernel: String, user: UInt32, checks: [DoctorCheck], trial: Trial?,
    verdict: CodedText
  ) {
    self.version = version
    self.kernel = kernel
    self.user = user
    self.checks = checks
    self.trial = trial
    self.verdict = verdict
  }

  /// Hibernation works in some way.
  public var hibernates: Bool { trial != nil }
}

/// Where a daemon runs, and how it hibernates: what `doctor` shows of it beside the checks.
public struct DaemonContext: Codable, Hashable, Sendable {
  public var pid: Int32
  /// Its effective user id.
  public var user: UInt32
  /// The cgroup under which each worker gets its own; nil: workers have none.
  public var cgroup: String?
  /// Its effective capabilities, as capabilities(7) names them, in lower case and without `CAP_`.
  public var capabilities: [String]
  /// How workers are suspended.
  public var freezer: CodedText
  /// What its policy permits: `enabled`, `disabled` or `shadow_mode`.
  public var hibernation: CodedText
  /// Workers that are hibernated now.
  public var hibernated: Int

  public init(
    pid: Int32, user: UInt32, cgroup: String?, capabilities: [String], freezer: CodedText,
    hibernation: CodedText, hibernated: Int
  ) {
    self.pid = pid
    self.user = user
    self.cgroup = cgroup
    self.capabilities = capabilities
    self.freezer = freezer
    self.hibernation = hibernation
    self.hibernated = hibernated
  }
}

/// What a daemon answers to `doctor`.
public struct DaemonExamination: Codable, Hashable, Sendable {
  public var context: DaemonContext
  /// Tried by a process that the daemon has started: as its user, in its cgroup and with its rights.
  public var report: DoctorReport

  public init(context: DaemonContext, report: DoctorReport) {
    self.context = context
    self.report = report
  }
}

/// What `doctor --json` prints: the deciding report's keys at the top, and beside them where it is from.
public struct DoctorDocument: Encodable, Sendable {
  /// That of the daemon where one runs, else the shell's.
  public var report: DoctorReport
  /// nil: no daemon runs, or it wasn't asked.
  public var daemon: DaemonContext?
  /// What the caller's own shell allows, beside a daemon.
  public var shell: DoctorReport?

  public init(shell: DoctorReport) { report = shell }

  public init(daemon: DaemonExamination, shell: DoctorReport) {
    report = daemon.report
    self.daemon = daemon.context
    self.shell = shell
  }

  /// What comes out otherwise in the shell, in the order of the table.
  public var differences: [DoctorCheck] {
    guard let shell else { return [] }
    return shell.checks.filter { check in
      report.checks.first { $0.id == check.id }.map { $0.result != check.result } ?? true
    }
  }

  private enum Keys: CodingKey { case askedOf, daemon, shell, differences }

  public func encode(to encoder: any Encoder) throws {
    try report.encode(to: encoder)
    var top = encoder.container(keyedBy: Keys.self)
    try top.encode(daemon == nil ? "shell" : "daemon", forKey: .askedOf)
    try top.encodeIfPresent(daemon, forKey: .daemon)
    try top.encodeIfPresent(shell, forKey: .shell)
    if shell != nil { try top.encode(differences.map(\.id), forKey: .differences) }
  }
}
