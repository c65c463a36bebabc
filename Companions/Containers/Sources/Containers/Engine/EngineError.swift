import CRI
import Control

/// A failure between this program and a container runtime.
public enum EngineError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The runtime doesn't run, or its socket has another path.
  case unreachable(String)
  case timedOut(Duration)
  case status(Int, String)
  /// The answer doesn't conform to the Engine API.
  case malformed(String)
  case tooLong(Int)
  /// A stream of events has ended, or an answer is incomplete.
  case closed
  case cri(CRIError)

  public var description: String {
    switch self {
    case .unreachable(let reason): "it can't be reached (\(reason))"
    case .timedOut(let limit): "it hasn't answered within \(durationText(limit / .seconds(1)))"
    case .status(let code, let text):
      "it has answered with status \(code)" + (text.isEmpty ? "" : ": \(text)")
    case .malformed(let what): "its answer can't be read: \(what)"
    case .tooLong(let limit): "its answer is longer than \(sizeText(Int64(limit)))"
    case .closed: "it has closed the connection"
    case .cri(let error): error.description
    }
  }
}
