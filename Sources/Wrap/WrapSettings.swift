import CLinux
import Glibc
import Linux
import Policy

/// What `dormouse wrap` was asked for.
public struct WrapSettings: Sendable {
  /// For people, and to find the program; it gets its arguments by `inheritance`.
  public var command: [String]
  /// Where the program is.
  public var path: String
  public var inheritance: Inheritance
  public var policy: LifecyclePolicy
  /// Holds `wrap/NAME` for each wrapper.
  public var stateDirectory: String
  /// Of the daemon that it registers with; the wrapper's own socket is in `wrap` beside it.
  public var daemonSocket: String
  /// nil: standard error, and only what is worth a person's attention.
  public var log: String?
  public var version: String
  /// By a daemon, when memory runs out.
  public var mayBeTerminated: Bool

  public init(
    command: [String], path: String, inheritance: Inheritance, policy: LifecyclePolicy,
    stateDirectory: String, daemonSocket: String, log: String?, version: String,
    mayBeTerminated: Bool = false
  ) {
    self.command = command
    self.path = path
    self.inheritance = inheritance
    self.policy = policy
    self.stateDirectory = stateDirectory
    self.daemonSocket = daemonSocket
    self.log = log
    self.version = version
    self.mayBeTerminated = mayBeTerminated
  }

  /// `clangd-4711`: unique as long as the wrapper lives, and a valid worker's name.
  var name: String {
    let base = (command.first ?? "").split(separator: "/").last ?? "wrapped"
    let safe = base.unicodeScalars.prefix(40).map { scalar in
      let isPlain = scalar.isASCII && scalar.properties.isAlphabetic
      return isPlain || ("0"..."9").contains(scalar) || "-_.".unicodeScalars.contains(scalar)
        ? Character(scalar) : "_"
    }
    let start = safe.first.map { $0 == "." || $0 == "-" } ?? true
    return "\(start ? "w" : "")\(String(safe))-\(getpid())"
  }

  var socketDirectory: String {
    let slash = daemonSocket.lastIndex(of: "/") ?? daemonSocket.startIndex
    return "\(daemonSocket[..<slash])/wrap"
  }
}
