import Glibc

/// Whether a process lives. If it can't be asked, nothing is known about it. Only `hasEnded` is a
/// reason to remove what the process needs, or to end what belongs to it.
public enum ProcessLife: Hashable, Sendable {
  case lives
  /// The process has ended, for certain: the pid belongs to no process or to another one, or all of
  /// its threads have ended.
  case hasEnded
  /// The process couldn't be asked: no descriptor or memory was free, or /proc hides it (hidepid).
  /// A later try may succeed.
  case unknown(SystemCallError)
}

extension ProcessIdentity {
  /// What is known about the process now. This reads its file in /proc once. If that fails, it
  /// calls kill(2), which needs no descriptor.
  public var life: ProcessLife {
    do throws(SystemCallError) {
      let stat = try ProcessStat.read(pid)
      return stat.startTime == startTime && !stat.isEnded ? .lives : .hasEnded
    } catch { return pid.isUnused ? .hasEnded : .unknown(error) }
  }

  /// True if the process has ended, for certain; see `ProcessLife`.
  public var hasEnded: Bool { life == .hasEnded }

  /// Checks that the process lives, after something of it was opened by its pid.
  ///
  /// - Throws: ESRCH if it has ended or another process has its pid; the reason if that can't be
  ///   found out.
  func checkLife(_ call: String, on subject: @autoclosure () -> String) throws(SystemCallError) {
    switch life {
    case .lives: return
    case .hasEnded: throw SystemCallError(call, on: subject(), code: ESRCH)
    case .unknown(let error): throw error
    }
  }
}

extension Int32 {
  /// For a pid: true if no process or thread has it. If this process has no right to signal it,
  /// kill(2) fails with EPERM.
  fileprivate var isUnused: Bool { self <= 0 || sendSignal(0, to: self) == -ESRCH }
}

extension SystemCallError {
  /// Returns the failure of opening a file in /proc/PID, corrected for hidden processes. With
  /// hidepid, /proc shows no processes of other users, nor undumpable ones of the same user. Then
  /// the error is EACCES, which doesn't mean that the process has ended.
  public func unlessHidden(_ pid: Int32) -> SystemCallError {
    guard code == ENOENT, !pid.isUnused else { return self }
    return SystemCallError(call, on: subject, code: EACCES)
  }
}
