import CLinux
import Control
import Glibc
import Lifecycle

/// How a wrapper ends.
public enum WrapEnd: Hashable, Sendable {
  /// The program has exited with this status, and the wrapper does the same.
  case exited(Int32)
  /// The program was ended by this signal, and the wrapper ends by the same.
  case signaled(Int32)
  /// The program didn't start. The reason is a sentence.
  case notStarted(String)
  /// The program can't be managed here, and wasn't started. The reason is a sentence.
  case unmanaged(String)

  init(_ status: ExitStatus) {
    self =
      switch status {
      case .exited(let code): .exited(code)
      case .signaled(let signal): .signaled(signal)
      case .outOfMemory: .signaled(SIGKILL)
      case .unknown: .notStarted("exit status unknown")
      }
  }

  /// Ends this process in the same way.
  public func perform() -> Never {
    switch self {
    case .exited(let code): exit(code)
    case .signaled(let signal):
      clinux_end_by_signal(signal)
      exit(128 + signal)
    case .notStarted: exit(CommandExit.cannotRun.rawValue)
    case .unmanaged: exit(CommandExit.notDone.rawValue)
    }
  }
}
