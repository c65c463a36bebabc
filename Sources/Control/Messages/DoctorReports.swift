// The results of `doctor`. docs/doctor.md describes their JSON.

/// The result of trying one mechanism of the kernel, or one permission.
public struct DoctorCheck: Codable, Hashable, Sendable {
  public enum Result: String, Codable, Hashable, Sendable {
    case works
    /// It works with a restriction, which `lost` describes.
    case limited
    case missing
  }

  public enum Need: String, Codable, Hashable, Sendable {
    /// Without it there is no hibernation, or no daemon.
    case required
    /// Without it something is slower, coarser or less safe.
    case useful
    /// Dormouse doesn't need it. It is reported because people ask for it.
    case informational
  }

  /// The identifier for programs. It never changes its meaning.
  public var id: String
  public var name: String
  public var need: Need
  public var result: Result
  /// The result of the trial, as text.
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

/// What the machine allows for one user in one environment.
public struct DoctorReport: Codable, Hashable, Sendable {
  /// The version of Dormouse.
  public var version: String
  /// The version of the kernel, as `uname -r` prints it.
  public var kernel: String
  /// The effective user id of the process that ran the checks.
  public var user: UInt32
  /// The checks in the order of the table.
  public var checks: [DoctorCheck]
  /// The trial hibernation, if it succeeded.
  public var trial: Trial?
  /// The summary: `hibernation_works`, `hibernation_missing` or `daemon_does_not_start`.
  public var verdict: CodedText

  /// A trial hibernation of a small shell.
  public struct Trial: Codable, Hashable, Sendable {
    /// How the shell was kept from running: `frozen` in a cgroup, or stopped and `traced`.
    public enum Rest: String, Codable, Hashable, Sendable { case frozen, traced }

    public var rest: Rest
    /// The number of bytes that left RAM.
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

  /// True if hibernation works in some way.
  public var hibernates: Bool { trial != nil }
}

/// The environment of a daemon, and how it hibernates. `doctor` shows it with the checks.
public struct DaemonContext: Codable, Hashable, Sendable {
  public var pid: Int32
  /// The daemon's effective user id.
  public var user: UInt32
  /// The cgroup under which each worker gets its own; nil if workers have none.
  public var cgroup: String?
  /// The daemon's effective capabilities, as capabilities(7) names them, in lower case and without
  /// `CAP_`.
  public var capabilities: [String]
  /// How workers are suspended.
  public var freezer: CodedText
  /// Whether the policy permits hibernation: `enabled`, `disabled` or `shadow_mode`.
  public var hibernation: CodedText
  /// The number of workers that are hibernated now.
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

/// A daemon's response to `doctor`.
public struct DaemonExamination: Codable, Hashable, Sendable {
  public var context: DaemonContext
  /// The results of a process that the daemon has started: as its user, in its cgroup and with its
  /// rights.
  public var report: DoctorReport

  public init(context: DaemonContext, report: DoctorReport) {
    self.context = context
    self.report = report
  }
}

/// The output of `doctor --json`: the keys of the deciding report, and beside them its origin.
public struct DoctorDocument: Encodable, Sendable {
  /// The report that decides: the daemon's if one runs, and otherwise the shell's.
  public var report: DoctorReport
  /// The daemon's environment; nil if no daemon runs, or it wasn't asked.
  public var daemon: DaemonContext?
  /// What the caller's own shell allows, if a daemon was asked, too.
  public var shell: DoctorReport?

  public init(shell: DoctorReport) { report = shell }

  public init(daemon: DaemonExamination, shell: DoctorReport) {
    report = daemon.report
    self.daemon = daemon.context
    self.shell = shell
  }

  /// The checks with another result in the shell, in the order of the table.
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
