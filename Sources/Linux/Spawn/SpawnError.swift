import CLinux
import Glibc

/// A process that couldn't be started: which step failed, and the kernel's reason.
public struct SpawnError: Error, Hashable, Sendable, CustomStringConvertible {
  public enum Step: Int32, Hashable, Sendable {
    case fork = 1
    case session, directory, descriptors, exec
    /// Before the kernel was asked: a string with a NUL, a variable without a name.
    case prepare
    /// It ran, but no descriptor for it was to be had; it was killed.
    case hold
    case identity, limit
    case keyring, oomScore
  }

  /// Of a process that was still in `step` at its deadline.
  private struct Hang: Hashable {
    var state: ProcessStat.State?
    var time: Duration
  }

  public let step: Step
  /// As in errno(3).
  public let code: Int32
  public let path: String
  public let directory: String
  public let inCgroup: Bool
  /// Who it was to run as, and the limit that couldn't be set.
  private let user: UInt32?
  private let limit: SpawnTerms.Limit?
  private let oomScore: OOMScore
  private let hang: Hang?

  /// It hung in `step`, and was killed.
  init(
    hungIn step: Step, _ state: ProcessStat.State?, after time: Duration, request: SpawnRequest
  ) {
    self.init(step: step, code: ETIMEDOUT, request: request, hang: Hang(state: state, time: time))
  }

  init(step: Step, code: Int32, request: SpawnRequest, limit: Int = 0) {
    self.init(step: step, code: code, request: request, limit: limit, hang: nil)
  }

  private init(step: Step, code: Int32, request: SpawnRequest, limit: Int = 0, hang: Hang?) {
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

  /// Starting it outside the cgroup may work.
  public var mayBeTheCgroup: Bool { step == .fork && inCgroup }

  /// It didn't fail, but wasn't the program at its deadline.
  public var isHang: Bool { hang != nil }

  public var description: String { "can't start \(path): \(explanation)" }

  /// What a process did when its time was over.
  private func explanation(of hang: Hang) -> String {
    let place =
      switch step {
      case .directory: "entering its directory \(directory)"
      case .exec: "reading the program"
      case .identity: "becoming user \(user ?? 0)"
      case .descriptors: "its input and output"
      default: "the steps before that"
      }
    let cause =
      switch hang.state {
      case .stopped, .traced:
        user.map { "a process of user \($0) can stop it there, and did" } ?? "it was stopped there"
      default: "does its file system answer?"
      }
    return
      "it didn't execute the program within \(hang.time.components.seconds) s, and was killed; "
      + "it hung in \(place) (\(cause))"
  }

  private var explanation: String {
    if let hang { return explanation(of: hang) }
    let reason = String(cString: strerror(code))
    switch step {
    case .fork where inCgroup:
      return "no process in its cgroup: \(reason)"
    case .fork where code == EAGAIN:
      return "no more processes allowed (RLIMIT_NPROC or pids.max): \(reason)"
    case .fork: return "no new process: \(reason)"
    case .session: return "no session of its own: \(reason)"
    case .directory where code == EACCES && user != nil:
      return "user \(user ?? 0), as whom it is to run, may not enter its directory \(directory)"
    case .directory: return "its directory \(directory): \(reason)"
    case .descriptors: return "its input and output: \(reason)"
    case .exec where code == ENOENT && access(path, F_OK) == 0:
      return "the file is there, but the interpreter that it names isn't"
    case .identity: return "to become user \(user ?? 0): \(reason)"
    case .limit where code == EPERM:
      return "its limit \(limit?.name ?? "") is over the hard limit (see `ulimit -H`), which takes "
        + "CAP_SYS_RESOURCE to raise, or over what the kernel allows at all"
    case .limit: return "its limit \(limit?.name ?? ""): \(reason)"
    case .exec where code == EACCES && user != nil:
      return "user \(user ?? 0), as whom it is to run, may not execute it"
    case .exec where code == ENOEXEC:
      return "it is neither a program for this machine nor a script with a #! line"
    case .exec: return reason
    case .prepare:
      return "its command, directory or environment has a NUL, or a variable without a valid name"
    case .keyring: return "no session keyring of its own: \(reason)"
    case .oomScore:
      let value = if case .value(let value) = oomScore { "\(value)" } else { "" }
      return "its `oom_score_adj` \(value): \(reason); a value under the daemon's own lowest takes "
        + "CAP_SYS_RESOURCE"
    case .hold: return "no descriptor to watch it with: \(reason)"
    }
  }
}
