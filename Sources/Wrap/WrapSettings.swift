import Glibc
import Linux
import Policy
import PolicyFile

/// The options and the command of `dormouse wrap`.
public struct WrapSettings: Sendable {
  /// The program and its arguments, for messages and to find the program. The program itself gets
  /// its arguments by `inheritance`.
  public var command: [String]
  /// The program's path.
  public var path: String
  public var inheritance: Inheritance
  public var policy: LifecyclePolicy
  /// The directory that contains `wrap/NAME` for each wrapper.
  public var stateDirectory: String
  /// The socket of the daemon that the wrapper registers with. The wrapper's own socket is in the
  /// directory `wrap` beside that.
  public var daemonSocket: String
  /// The path of the log. If it is nil, errors are written to standard error; if that is the
  /// program's terminal, they wait until the program has ended.
  public var log: String?
  public var version: String
  /// Whether a daemon may terminate the program when memory is short.
  public var mayBeTerminated = false
  /// The first part of the wrapper's name. If it is nil, the command's name is used.
  public var label: String?
  /// How the program is asked to free memory; nil if it can't be asked.
  public var shed: WorkerConfiguration.Shed?
  /// The directory in which the wrapper was started; nil if that was removed.
  public var directory: String?
  /// The time from the moment at which its host has closed both standard input and output until the
  /// program is stopped; nil if it is never stopped for that.
  public var hostGrace: Duration? = defaultHostGrace
  /// If true, and the process that started the wrapper has ended, the end of one of the two is
  /// enough if the other isn't a pipe or socket.
  public var endsWithHost = false

  /// The default of `hostGrace`. A program that ends at the end of its input has ended by then.
  public static let defaultHostGrace = Duration.seconds(10)

  public init(
    command: [String], path: String, inheritance: Inheritance, policy: LifecyclePolicy,
    stateDirectory: String, daemonSocket: String, version: String
  ) {
    self.command = command
    self.path = path
    self.inheritance = inheritance
    self.policy = policy
    self.stateDirectory = stateDirectory
    self.daemonSocket = daemonSocket
    self.version = version
  }

  /// The wrapper's name, such as `clangd-4711`. It is unique while the wrapper lives, and is a
  /// valid name of a worker.
  var name: String {
    "\(label ?? NameRule.name(of: command))-\(getpid())"
  }

  /// Whether the text can be the first part of a wrapper's name. With `-` and a pid it must be a
  /// valid name of a worker.
  public static func isLabel(_ text: String) -> Bool {
    let allowed = text.unicodeScalars.allSatisfy {
      $0.isASCII && $0.properties.isAlphabetic || ("0"..."9").contains($0)
        || "-_.".unicodeScalars.contains($0)
    }
    return allowed && (1...40).contains(text.utf8.count) && !text.hasPrefix(".")
      && !text.hasPrefix("-")
  }

  var socketDirectory: String {
    let slash = daemonSocket.lastIndex(of: "/") ?? daemonSocket.startIndex
    return "\(daemonSocket[..<slash])/wrap"
  }
}
