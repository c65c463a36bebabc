import CRI
import Control

/// What went wrong between this program and a container runtime.
public enum EngineError: Error, Hashable, Sendable, CustomStringConvertible {
  /// It doesn't run, or its socket is elsewhere.
  case unreachable(String)
  case timedOut(Duration)
  case status(Int, String)
  /// The answer isn't what the Engine API says.
  case malformed(String)
  case tooLong(Int)
  /// A stream of events has ended, or an answer isn't whole.
  case closed
  case cri(CRIError)

  public var description: String {
    switch self {
    case .unreachable(let why): "it can't be reached (\(why))"
    case .timedOut(let limit): "it hasn't answered within \(durationText(limit / .seconds(1)))"
    case .status(let code, let text):
      "it has answered with status \(code)" + (text.isEmpty ? "" : ": \(text)")
    case .malformed(let what): "its answer can't be read: \(what)"
    case .tooLong(let most): "its answer is longer than \(sizeText(Int64(most)))"
    case .closed: "it has closed the connection"
    case .cri(let error): error.description
    }
  }
}
