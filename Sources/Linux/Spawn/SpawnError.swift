import Glibc

/// A process couldn't be started: the step that failed, and the kernel's reason.
public struct SpawnError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The steps of a start. The numbers are those that `clinux_spawn_begin` reports.
  public enum Step: Int32, Hashable, Sendable {
    case fork = 1
    case session, directory, descriptors, exec
    /// The request is invalid: a string contains a NUL, or a variable has no name. No system call
    /// was made.
    case prepare
    /// The process existed, but no descriptor for it could be opened; it was killed.
    case openPidfd
    case identity, limit
    case keyring, oomScore
  }

  /// The state of a process that was still in `step` at its deadline.
  struct Hang: Hashable {
    var state: ProcessStat.State?
    var time: Duration
  }

  public let step: Step
  /// The error number as in errno(3).
  public let code: Int32
  public let path: String
  public let directory: String
  public let inCgroup: Bool
  /// The user that the process should run as. `limit` is the limit that couldn't be set.
  private let user: UInt32?
  private let limit: SpawnTerms.Limit?
  private let oomScore: OOMScore
  private let hang: Hang?

  /// Describes a process that hung in `step` and was killed.
  init(
    hungIn step: Step, _ state: ProcessStat.State?, after time: Duration, request: SpawnRequest
  ) {
    self.init(step: step, code: ETIMEDOUT, request: request, hang: Hang(state: state, time: time))
  }

  init(step: Step, code: Int32, request: SpawnRequest, limit: Int = 0, hang: Hang? = nil) {
    self.step = step
    self.code = code
    path = request.path
    directory = request.directory
    inCgroup = request.cgroup != nil
    self.hang = hang
    oomScore = request.oomScore
    user = request.terms?.identity?.user
    let limits = request.terms?.limits ?? []
    self.limit = step == .limit && limits.indices.contains(limit) ? limits[limit] : nil
  }

  /// True if starting the process outside the cgroup may work.
  public var mayBeTheCgroup: Bool { step == .fork && inCgroup }

  /// True if descriptors, memory or processes were short. The start may succeed a moment later.
  public var isShortage: Bool { [EMFILE, ENFILE, ENOMEM, EAGAIN].contains(code) }

  /// True if no step failed, but the process hadn't executed the program at its deadline.
  public var isHang: Bool { hang != nil }

  public var description: String { "can't start \(reason)" }

  /// The program and the reason, for a sentence that says already that something didn't start.
  public var reason: String { "\(path): \(explanation)" }

  /// Describes what a process did when its deadline passed.
  private func explanation(of hang: Hang) -> String {
    let activity =
      switch step {
      case .directory: "entering its directory \(directory)"
      case .exec: "reading the program"
      case .identity: "becoming user \(user ?? 0)"
      case .descriptors: "opening its input and output"
      default: "being prepared"
      }
    let cause =
      switch hang.state {
      case .stopped, .traced:
        user.map { "a process of user \($0) stopped it" } ?? "another process stopped it"
      default: "check its file system"
      }
    return
      "the program did not start within \(hang.time.components.seconds) s; killed while it was "
      + "\(activity) (\(cause))"
  }

  private var explanation: String {
    if let hang { return explanation(of: hang) }
    let reason = errorText(code)
    switch step {
    case .fork where inCgroup:
      return "can't create a process in its cgroup: \(reason)"
    case .fork where code == EAGAIN:
      return "no more processes allowed (RLIMIT_NPROC or pids.max): \(reason)"
    case .fork: return "can't create a process: \(reason)"
    case .session: return "can't create its session: \(reason)"
    case .directory where code == EACCES && user != nil:
      return "its user \(user ?? 0) may not enter its directory \(directory)"
    case .directory: return "can't enter its directory \(directory): \(reason)"
    case .descriptors: return "can't open its input and output: \(reason)"
    case .exec where code == ENOENT && access(path, F_OK) == 0:
      return "its interpreter (#! line or ELF loader) does not exist"
    case .identity: return "can't switch to user \(user ?? 0): \(reason)"
    case .limit where code == EPERM:
      return
        "its limit \(limit?.name ?? "") is over the hard limit (`ulimit -H`); raising that needs "
        + "CAP_SYS_RESOURCE, and the kernel has a maximum of its own"
    case .limit: return "can't set its limit \(limit?.name ?? ""): \(reason)"
    case .exec where code == EACCES && user != nil:
      return "its user \(user ?? 0) may not execute it"
    case .exec where code == ENOEXEC:
      return "not a program for this machine, and no #! line"
    case .exec: return reason
    case .prepare:
      return
        "its command, directory or environment contains a NUL or a variable with an invalid name"
    case .keyring: return "can't create its session keyring: \(reason)"
    case .oomScore:
      let value = if case .value(let value) = oomScore { "\(value)" } else { "" }
      return
        "can't set its `oom_score_adj` \(value): \(reason); a value below the daemon's own needs "
        + "CAP_SYS_RESOURCE"
    case .openPidfd: return "can't get a descriptor to watch it: \(reason)"
    }
  }
}
