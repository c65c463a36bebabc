import Linux

/// The reason why a client got no response.
public enum ControlError: Error, Hashable, Sendable {
  /// No process listens at this path.
  case noDaemon(path: String)
  /// No process listens at this path, and it is that of a project. `file` is the project's
  /// configuration.
  case noDaemonOfProject(String, file: String, path: String)
  case refusedByPermissions(path: String)
  /// A process of another user listens there. It would receive this process's environment.
  case foreignDaemon(path: String, uid: UInt32)
  case pathTooLong(path: String, maximum: Int)
  /// The connection ended before the response.
  case closedEarly(path: String)
  /// The daemon sent a line that isn't a response.
  case malformed(path: String, what: String)
  /// The daemon couldn't read the request. The text is its reason.
  case rejected(text: String)
  /// The daemon responded to a request that this client didn't send.
  case unexpectedResponse(id: UInt64)
  case timedOut(after: Duration)
  case unsendable(WireError)
  case system(operation: String, path: String, code: Int32)
}

extension ControlError: CustomStringConvertible {
  /// One sentence without a full stop: what failed, on what, and what to do.
  public var description: String {
    switch self {
    case .noDaemon(let path):
      "no daemon answers at \(escaped(path)); start one with `dormouse daemon -d`"
    case .noDaemonOfProject(let name, let file, let path):
      "the daemon of project \(escaped(name)) isn't running (none answers at \(escaped(path))); "
        + "`dormouse up` starts it with \(escaped(file))"
    case .refusedByPermissions(let path):
      "you may not connect to \(escaped(path)): only the daemon's user and root may"
    case .foreignDaemon(let path, let uid):
      "the process that listens at \(escaped(path)) belongs to user \(uid), not to you or root; "
        + "choose your daemon with --socket"
    case .pathTooLong(let path, let maximum):
      "the socket path \(escaped(path)) has \(path.utf8.count) bytes, more than the kernel's "
        + "limit of \(maximum); choose a shorter one with --socket or DORMOUSE_CONTROL_SOCKET"
    case .closedEarly(let path):
      "the daemon at \(escaped(path)) ended before it answered"
    case .malformed(let path, let what):
      "the process that listens at \(escaped(path)) does not use Dormouse's protocol: \(what)"
    case .rejected(let text): "the daemon can't read the request: \(escaped(text))"
    case .unexpectedResponse(let id):
      "the daemon answered request \(id), which this client did not send"
    case .timedOut(let limit): "the daemon did not answer within \(limit)"
    case .unsendable(let error): "can't send the request: \(error)"
    case .system(let operation, let path, let code):
      "\(operation) failed at \(escaped(path)): \(errorText(code))"
    }
  }
}
