/// A failure between this program and a runtime's CRI.
public enum CRIError: Error, Hashable, Sendable, CustomStringConvertible {
  case unreachable(String)
  case timedOut
  /// The runtime has no such call.
  case unsupported
  case notFound
  case refused(String)
  case malformed(String)
  case closed

  public var description: String {
    switch self {
    case .unreachable(let reason): "it can't be reached (\(reason))"
    case .timedOut: "it hasn't answered in time"
    case .unsupported: "it doesn't know this call; `runtime.v1` of CRI is needed"
    case .notFound: "it has no such container"
    case .refused(let reason): "it has refused: \(reason)"
    case .malformed(let what): "its answer can't be read: \(what)"
    case .closed: "it has closed the connection"
    }
  }
}
