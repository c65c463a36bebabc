import Linux
import Policy
import WorkerProtocol

/// Everything that is needed to start a worker.
public struct LaunchPlan: Sendable {
  public var name: String
  /// The command's arguments (argv). The first is a path, or a name that is searched for in the
  /// PATH of `environment`.
  public var command: [String]
  public var directory: String
  /// The worker's environment, without the variables that Dormouse sets or removes itself.
  public var environment: [String: String]
  /// Reads the variables of the worker's `env_file`, which replace those of `environment`. The call
  /// may block without limit. The error that it throws is the reason why the worker, or a command
  /// for it, isn't started.
  public var fileVariables: (@Sendable () throws(LaunchError) -> [String: String])?
  public var cgroup: WorkerCgroup?
  public var logPath: String
  /// In bytes. A log that is larger at the launch is renamed first.
  public var logLimit: Int64
  /// The path of its `NotifySocket`, passed as `NOTIFY_SOCKET`.
  public var notifySocket: String?
  /// The path of its `PressureWatch`, passed as `MEMORY_PRESSURE_WATCH`.
  public var pressureWatch: String?
  /// The path of its `WorkerSocket`, passed as `DORMOUSE_WORKER_SOCKET`.
  public var workerSocket: String?
  /// The value of `DORMOUSE_RUN`. It identifies processes that have left the worker's tree
  /// (`EscapedDescendants`).
  public var mark: String?
  /// The interval at which it has to send `WATCHDOG=1`, passed as `WATCHDOG_USEC`.
  public var watchdog: Duration?
  /// Set if the new process replaces the daemon. It also inherits the daemon's descriptors 0, 1 and
  /// 2 then, and has no log.
  public var inheritance: Inheritance?
  /// The user that it runs as; nil means the daemon's user.
  public var account: Account?
  public var limits: [SpawnTerms.Limit] = []
  /// The file mode creation mask; nil means the daemon's.
  public var umask: UInt32?
  public var oomScore = OOMScore.usual
  /// If true, the worker and commands for it can't read the daemon's session keyring.
  public var newKeyring = false
  /// The sockets that it gets by `LISTEN_FDS`, from descriptor 3 on.
  public var listeners: [Listener] = []
  /// The descriptors that an earlier run has stored. They follow the sockets, in this order.
  public var stored: [DescriptorStore.Entry] = []
  /// The channel by which it reports that it is ready (`notification_fd`).
  public var readinessChannel: ReadinessChannel?
  /// The number of old logs that are kept.
  public var logKeep = 1
  /// True if the configuration gives the path of the log.
  public var isLogPathConfigured = false

  public var logDestination: LogDestination {
    LogDestination(
      path: logPath, keep: logKeep, isPathConfigured: isLogPathConfigured, account: account)
  }

  public init(
    name: String, command: [String], directory: String, environment: [String: String],
    cgroup: WorkerCgroup? = nil, logPath: String, logLimit: Int64 = 10 << 20,
    notifySocket: String? = nil, pressureWatch: String? = nil
  ) {
    self.name = name
    self.command = command
    self.directory = directory
    self.environment = environment
    self.cgroup = cgroup
    self.logPath = logPath
    self.logLimit = logLimit
    self.notifySocket = notifySocket
    self.pressureWatch = pressureWatch
  }

  /// Variables between a daemon and *its* service manager (or the daemon whose worker it is). A
  /// worker must not take them for its own.
  private static let notInherited = [
    "NOTIFY_SOCKET", "MAINPID", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID",
    "LISTEN_FDNAMES", "MEMORY_PRESSURE_WATCH", "MEMORY_PRESSURE_WRITE", "JOURNAL_STREAM",
    "INVOCATION_ID", WorkerProtocol.socketVariable, markVariable,
  ]

  public static let markVariable = "DORMOUSE_RUN"

  /// base64 of `some 200000 2000000` and a NUL, systemd's default threshold. The daemon's socket
  /// needs no threshold, but some clients insist on writing one.
  private static let pressureWrite = "c29tZSAyMDAwMDAgMjAwMDAwMAA="

  /// The environment of commands that run for the worker and aren't part of it.
  public var bareEnvironment: [String: String] {
    var result = environment
    for key in Self.notInherited { result[key] = nil }
    result["DORMOUSE_WORKER"] = name
    return result
  }

  /// The worker's environment, with the variables for its sockets to the daemon.
  public var fullEnvironment: [String: String] {
    var result = bareEnvironment
    result["NOTIFY_SOCKET"] = notifySocket
    result[WorkerProtocol.socketVariable] = workerSocket
    result[Self.markVariable] = mark
    if let watchdog {
      let (seconds, attoseconds) = watchdog.components
      result["WATCHDOG_USEC"] = "\(seconds * 1_000_000 + attoseconds / 1_000_000_000_000)"
    }
    if let pressureWatch {
      result["MEMORY_PRESSURE_WATCH"] = pressureWatch
      result["MEMORY_PRESSURE_WRITE"] = Self.pressureWrite
    }
    if handedOver > 0 {
      result["LISTEN_FDS"] = "\(handedOver)"
      result["LISTEN_FDNAMES"] = (listeners.map(\.socket.name) + stored.map(\.name))
        .joined(separator: ":")
    }
    return result
  }

  private var handedOver: Int { listeners.count + stored.count }

  /// The properties of the new process that differ from the daemon's.
  var terms: SpawnTerms {
    var terms = commandTerms
    terms.limits = limits
    let descriptors = listeners.map(\.descriptor.raw) + stored.map(\.descriptor.raw)
    terms.placed = descriptors.enumerated().map { index, raw in .init(raw, at: 3 + Int32(index)) }
    if handedOver > 0 { terms.pidVariables.append("LISTEN_PID") }
    if watchdog != nil { terms.pidVariables.append("WATCHDOG_PID") }
    if let readinessChannel {
      terms.placed.append(
        .init(readinessChannel.descriptor.raw, at: readinessChannel.number))
    }
    return terms
  }

  /// The terms of commands that run for the worker, as the same user.
  var commandTerms: SpawnTerms {
    var terms = SpawnTerms()
    terms.identity = account?.identity
    terms.umask = umask
    terms.newKeyring = newKeyring
    return terms
  }

  /// Checks that the descriptors which the worker gets have different numbers.
  func checkDescriptors() throws(LaunchError) {
    if handedOver > SpawnTerms.maxPlaced - 1 {
      throw .descriptors(
        "it can't have more than \(SpawnTerms.maxPlaced - 1) sockets in `listen` and "
          + "descriptors in `fdstore`")
    }
    if let number = readinessChannel?.number, number < 3 + handedOver {
      let keys = stored.isEmpty ? "`listen` takes" : "`listen` and `fdstore` take"
      throw .descriptors(
        "its notification_fd, \(number), is one of the \(handedOver) that \(keys) from 3 on; "
          + "choose \(3 + handedOver) or more")
    }
  }

  /// Returns a plan with the variables of the `env_file` in `environment`. The call may block.
  func withFileVariables() throws(LaunchError) -> LaunchPlan {
    guard let fileVariables else { return self }
    var plan = self
    plan.environment.merge(try fileVariables()) { $1 }
    plan.fileVariables = nil
    return plan
  }

  /// The path of the program that a command names.
  func executable(of command: [String]) throws(LaunchError) -> String {
    guard let program = command.first, !program.isEmpty else { throw .noCommand }
    let path = environment["PATH"] ?? "/usr/local/bin:/usr/bin:/bin"
    guard let executable = resolveExecutable(program, path: path) else {
      throw .notFound(program, path: path)
    }
    return executable
  }
}

/// The reason why a worker, or a command for it, didn't start.
public enum LaunchError: Error, Hashable, Sendable, CustomStringConvertible {
  case noCommand
  case notFound(String, path: String)
  case log(SystemCallError)
  case spawn(SpawnError)
  /// Two of its descriptors would have the same number, or there are too many descriptors.
  case descriptors(String)
  case environmentFile(String)
  /// A file system doesn't answer.
  case stuck(String)

  public var description: String {
    switch self {
    case .notFound, .spawn: "can't start \(reason)"
    case .noCommand, .log, .descriptors, .environmentFile, .stuck: reason
    }
  }

  /// True if descriptors, memory or processes were short. It may start a moment later.
  var isShortage: Bool {
    switch self {
    case .log(let error): error.isShortage
    case .spawn(let error): error.isShortage
    default: false
    }
  }

  /// The reason alone, for a sentence that already says that something didn't start.
  public var reason: String {
    switch self {
    case .noCommand: "its command is empty"
    case .notFound(let program, let path): "\(program): not found in its PATH, \(path)"
    case .log(let error): "can't open its log: \(error)"
    case .spawn(let error): error.reason
    case .descriptors(let reason), .environmentFile(let reason), .stuck(let reason): reason
    }
  }
}
