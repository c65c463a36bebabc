import Linux
import Policy
import WorkerProtocol

/// All that is needed to start a worker.
public struct LaunchPlan: Sendable {
  public var name: String
  /// argv; the first is a path, or looked up in the environment's PATH.
  public var command: [String]
  public var directory: String
  /// The worker's environment, apart from the variables that Dormouse sets or removes itself.
  public var environment: [String: String]
  /// Reads the variables of the worker's `env_file`, which replace those of `environment`. It may take without
  /// limit. What it throws is the reason why the worker, or a command for it, isn't started.
  public var fileVariables: (@Sendable () throws(LaunchError) -> [String: String])?
  public var cgroup: WorkerCgroup?
  public var logPath: String
  /// Bytes; a log that is larger at launch is put aside first.
  public var logLimit: Int64
  /// `NOTIFY_SOCKET`: the path of a `NotifySocket`.
  public var notifySocket: String?
  /// `MEMORY_PRESSURE_WATCH`: the path of a `PressureWatch`.
  public var pressureWatch: String?
  /// `DORMOUSE_WORKER_SOCKET`: the path of a `WorkerSocket`.
  public var workerSocket: String?
  /// `DORMOUSE_RUN`, by which its processes are found that have left its tree (`Strays`).
  public var mark: String?
  /// `WATCHDOG_USEC`: how often it sends `WATCHDOG=1`.
  public var watchdog: Duration?
  /// The worker takes the daemon's place: it inherits the daemon's descriptors 0, 1 and 2 as well, and has no
  /// log.
  public var inheritance: Inheritance?
  /// The user that it runs as; nil: the daemon's.
  public var account: Account?
  public var limits: [SpawnTerms.Limit] = []
  /// nil: as ours.
  public var umask: UInt32?
  public var oomScore = OOMScore.usual
  /// The worker, and commands for it, can't read the daemon's session keyring.
  public var ownKeyring = false
  /// Sockets that it gets as `LISTEN_FDS`, from descriptor 3 on.
  public var listeners: [Listener] = []
  /// The descriptors that an earlier run has stored: after the sockets, in this order.
  public var stored: [DescriptorStore.Entry] = []
  /// The descriptor on which it reports that it is ready (`notification_fd`).
  public var readinessChannel: ReadinessChannel?
  /// Old logs that are kept.
  public var logKeep = 1
  /// Its configuration names the log.
  public var logIsElsewhere = false

  public var logPlace: LogPlace {
    LogPlace(path: logPath, keep: logKeep, isElsewhere: logIsElsewhere, account: account)
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

  /// Variables between a daemon and *its* service manager (or the daemon whose worker it is). Workers must not
  /// use them as their own.
  private static let notInherited = [
    "NOTIFY_SOCKET", "MAINPID", "WATCHDOG_USEC", "WATCHDOG_PID", "LISTEN_FDS", "LISTEN_PID",
    "LISTEN_FDNAMES", "MEMORY_PRESSURE_WATCH", "MEMORY_PRESSURE_WRITE", "JOURNAL_STREAM",
    "INVOCATION_ID", WorkerProtocol.socketVariable, markVariable,
  ]

  public static let markVariable = "DORMOUSE_RUN"

  /// base64 of `some 200000 2000000` and a NUL, systemd's default threshold. A socket's listener
  /// needs nothing written, but some clients insist on writing something.
  private static let pressureWrite = "c29tZSAyMDAwMDAgMjAwMDAwMAA="

  /// For commands that run for the worker and aren't part of it.
  public var bareEnvironment: [String: String] {
    var result = environment
    for key in Self.notInherited { result[key] = nil }
    result["DORMOUSE_WORKER"] = name
    return result
  }

  public var fullEnvironment: [String: String] {
    var result = bareEnvironment
    result["NOTIFY_SOCKET"] = notifySocket
    result[WorkerProtocol.socketVariable] = workerSocket
    result[Self.markVariable] = mark
    if let watchdog {
      result["WATCHDOG_USEC"] =
        "\(watchdog.components.seconds * 1_000_000 + watchdog.components.attoseconds / 1_000_000_000_000)"
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

  /// The account, if it isn't the daemon's.
  var terms: SpawnTerms? {
    var terms = SpawnTerms()
    terms.identity = account?.identity
    terms.limits = limits
    terms.umask = umask
    terms.ownKeyring = ownKeyring
    let given = listeners.map(\.descriptor.raw) + stored.map(\.descriptor.raw)
    terms.placed = given.enumerated().map { index, raw in .init(raw, at: 3 + Int32(index)) }
    if handedOver > 0 { terms.pidVariables.append("LISTEN_PID") }
    if watchdog != nil { terms.pidVariables.append("WATCHDOG_PID") }
    if let readinessChannel {
      terms.placed.append(
        .init(readinessChannel.descriptor.raw, at: readinessChannel.number))
    }
    return terms == SpawnTerms() ? nil : terms
  }

  /// For commands that run for the worker: as the same user.
  var commandTerms: SpawnTerms? {
    var terms = SpawnTerms()
    terms.identity = account?.identity
    terms.umask = umask
    terms.ownKeyring = ownKeyring
    return terms == SpawnTerms() ? nil : terms
  }

  func checkDescriptors() throws(LaunchError) {
    if handedOver > SpawnTerms.maxPlaced - 1 {
      throw .descriptors(
        "it can't have more than \(SpawnTerms.maxPlaced - 1) sockets in `listen` and descriptors in "
          + "`fdstore`")
    }
    if let number = readinessChannel?.number, number < 3 + handedOver {
      let keys = stored.isEmpty ? "`listen` takes" : "`listen` and `fdstore` take"
      throw .descriptors(
        "its notification_fd, \(number), is one of the \(handedOver) that \(keys) from 3 on; "
          + "choose \(3 + handedOver) or more")
    }
  }

  /// With the variables of its `env_file` in `environment`.
  func withFileVariables() throws(LaunchError) -> LaunchPlan {
    guard let fileVariables else { return self }
    var plan = self
    plan.environment.merge(try fileVariables()) { $1 }
    plan.fileVariables = nil
    return plan
  }

  /// Where the first word of a command is.
  func executable(of command: [String]) throws(LaunchError) -> String {
    guard let program = command.first, !program.isEmpty else { throw .noCommand }
    let path = environment["PATH"] ?? "/usr/local/bin:/usr/bin:/bin"
    guard let found = resolveExecutable(program, path: path) else {
      throw .notFound(program, path: path)
    }
    return found
  }
}

/// Why a worker, or a command for it, didn't start.
public enum LaunchError: Error, Hashable, Sendable, CustomStringConvertible {
  case noCommand
  case notFound(String, path: String)
  case log(SystemCallError)
  case spawn(SpawnError)
  /// Two of its descriptors would have the same number, or there are too many.
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

  /// For a sentence that says already that something didn't start.
  public var reason: String {
    switch self {
    case .noCommand: "its command is empty"
    case .notFound(let program, let path): "\(program): not found in its PATH, \(path)"
    case .log(let error): "can't open its log: \(error)"
    case .spawn(let error): error.reason
    case .descriptors(let why), .environmentFile(let why), .stuck(let why): why
    }
  }
}
