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

  init(step: Step, code: Int32, request: SpawnRequest, limit: Int = 0) {
    self.step = step
    self.code = code
    path = request.path
    directory = request.directory
    inCgroup = request.cgroup != nil
    user = request.terms?.identity?.user
    let limits = request.terms?.limits ?? []
    self.limit = step == .limit && limits.indices.contains(limit) ? limits[limit] : nil
  }

  /// Starting it outside the cgroup may work.
  public var mayBeTheCgroup: Bool { step == .fork && inCgroup }

  public var description: String { "can't start \(path): \(explanation)" }

  private var explanation: String {
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
    case .hold: return "no descriptor to watch it with: \(reason)"
    }
  }
}
