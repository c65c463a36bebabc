import Control

/// A failure between this program and the Kubernetes API.
public enum KubernetesError: Error, Hashable, Sendable, CustomStringConvertible {
  case unreachable(String)
  case timedOut(Duration)
  /// The token can't be read.
  case token(String)
  /// The API has answered with a status. `after` is the time for which the API wants no request.
  case status(Int, String, after: Duration?)
  case malformed(String)
  case tooLong(Int)

  /// True if the API as a whole is concerned, not only this request: it is tried again later.
  public var isOutage: Bool {
    switch self {
    case .unreachable, .timedOut, .token, .malformed, .tooLong: true
    case .status(let code, _, _): code == 401 || code == 429 || code >= 500
    }
  }

  public var code: Int? { if case .status(let code, _, _) = self { code } else { nil } }

  public var retryAfter: Duration? {
    if case .status(_, _, let after) = self { after } else { nil }
  }

  public var description: String {
    switch self {
    case .unreachable(let reason): "it can't be reached (\(reason))"
    case .timedOut(let limit): "it hasn't answered within \(durationText(limit / .seconds(1)))"
    case .token(let reason): "the token can't be read: \(reason)"
    case .status(let code, let text, _):
      "it has answered with status \(code)" + (text.isEmpty ? "" : ": \(text)")
    case .malformed(let what): "its answer can't be read: \(what)"
    case .tooLong(let limit): "its answer is longer than \(sizeText(Int64(limit)))"
    }
  }
}
