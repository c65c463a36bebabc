import CLinux
import Glibc
import Linux
import Policy
import PolicyFile

/// The options and the command of `dormouse wrap`.
public struct WrapSettings: Sendable {
  /// For messages, and to find the program. The program gets its arguments by `inheritance`.
  public var command: [String]
  /// The program's path.
  public var path: String
  public var inheritance: Inheritance
  public var policy: LifecyclePolicy
  /// Holds `wrap/NAME` for each wrapper.
  public var stateDirectory: String
  /// The socket of the daemon that it registers with. The wrapper's own socket is in `wrap` beside that.
  public var daemonSocket: String
  /// nil: standard error, with errors only; if that is the program's terminal, they are held until its end.
  public var log: String?
  public var version: String
  /// A daemon may terminate it when memory runs out.
  public var mayBeTerminated: Bool
  /// The first part of its name, in place of the command's.
  public var label: String?
  /// How it is asked to free memory; nil: it can't be asked.
  public var shed: WorkerConfiguration.Shed?
  /// Where the wrapper was started; nil: that directory was removed.
  public var directory: String?
  /// From the moment at which its host has closed both standard input and output until the program
  /// is stopped; nil: it may stay.
  public var hostGrace: Duration?
  /// When the process that started the wrapper has ended, one of the two is enough, if the other is no
  /// pipe or socket.
  public var endsWithHost = false

  /// A program that ends at the end of its input has ended by then.
  public static let defaultHostGrace = Duration.seconds(10)

  public init(
    command: [String], path: String, inheritance: Inheritance, policy: LifecyclePolicy,
    stateDirectory: String, daemonSocket: String, log: String?, version: String,
    mayBeTerminated: Bool = false, label: String? = nil,
    shed: WorkerConfiguration.Shed? = nil, directory: String? = nil,
    hostGrace: Duration? = WrapSettings.defaultHostGrace
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
    self.label = label
    self.shed = shed
    self.directory = directory
    self.hostGrace = hostGrace
  }

  /// `clangd-4711`: unique as long as the wrapper lives, and a valid worker's name.
  var name: String {
    "\(label ?? NameRule.name(of: command))-\(getpid())"
  }

  /// Whether it can be the first part of a wrapper's name: with `-` and a pid it is a worker's name.
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
