import Glibc

/// Whether a process lives. That it couldn't be asked says nothing about it: only `hasEnded` is a reason to
/// remove what it needs, or to end what belongs to it.
public enum ProcessLife: Hashable, Sendable {
  case lives
  /// For certain: the pid belongs to no process or to another one, or its threads have all ended.
  case hasEnded
  /// It couldn't be asked: no descriptor or memory was free, or /proc hides it (hidepid). A later try may
  /// find out.
  case unknown(SystemCallError)
}

extension ProcessIdentity {
  /// What is known of it now. One read of its file in /proc; if that fails, kill(2), which needs no
  /// descriptor.
  public var life: ProcessLife {
    do throws(SystemCallError) {
      let stat = try ProcessStat.read(pid)
      return stat.startTime == startTime && !stat.isEnded ? .lives : .hasEnded
    } catch { return pid.isUnused ? .hasEnded : .unknown(error) }
  }

  /// It has ended, for certain; see `ProcessLife`.
  public var hasEnded: Bool { life == .hasEnded }

  /// Checks that it lives, after something of it was opened by its pid.
  ///
  /// - Throws: ESRCH if it has ended or another process has its pid; the reason if that can't be found out.
  func checkLife(_ call: String, on subject: @autoclosure () -> String) throws(SystemCallError) {
    switch life {
    case .lives: return
    case .hasEnded: throw SystemCallError(call, on: subject(), code: ESRCH)
    case .unknown(let error): throw error
    }
  }
}

extension Int32 {
  /// As a pid: no process or thread has it. Without rights for a process kill(2) fails with EPERM.
  fileprivate var isUnused: Bool { self <= 0 || sendSignal(0, to: self) == -ESRCH }
}

extension SystemCallError {
  /// The same failure of opening a file in /proc/PID. With hidepid /proc shows no processes of other users, nor
  /// undumpable ones of the same user: then it is EACCES, which doesn't mean that the process has ended.
  public func unlessHidden(_ pid: Int32) -> SystemCallError {
    guard code == ENOENT, !pid.isUnused else { return self }
    return SystemCallError(call, on: subject, code: EACCES)
  }
}
