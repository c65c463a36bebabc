import ArgumentParser
import Control
import Daemon
import Glibc
import Linux
import PolicyFile

struct DaemonCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "daemon", abstract: "Run the daemon in the foreground.",
    discussion: """
      The daemon starts the workers of the configuration and manages them until SIGTERM, SIGINT or \
      `dormouse shutdown`. Without a configuration it starts with no workers; `dormouse run` adds them.

      A file called dormouse.yaml, or a directory that holds one, is read with the conf.d/*.yaml beside \
      it. SIGHUP and `dormouse reload` read all of them again.

      Examples:
        dormouse daemon
        dormouse daemon --config dormouse.yaml --policy server
      """)

  @Option(
    help: ArgumentHelp(
      "The configuration. Default: dormouse/dormouse.yaml in $XDG_CONFIG_HOME or ~/.config (root: "
        + "in /etc), which may be missing.",
      valueName: "file"), completion: .file())
  var config: String?
  @Option(
    help: ArgumentHelp(
      "Listen here for clients. They need the same option, or DORMOUSE_CONTROL_SOCKET.",
      valueName: "path"), completion: .file())
  var socket: String?
  @Option(
    help: ArgumentHelp(
      "Keep images, logs and records here. Default: dormouse in $XDG_STATE_HOME or ~/.local/state "
        + "(root: in /var/lib).",
      valueName: "directory"), completion: .directory)
  var stateDirectory: String?
  @Option(
    help: ArgumentHelp(
      "Use this policy instead of the configuration's: a name or a file.", valueName: "policy"),
    completion: .policies)
  var policy: String?
  @Flag(
    help: ArgumentHelp(
      "Prepare the unit's cgroup for a daemon, and exit: for ExecStartPre= and ExecStopPost= of a "
        + "unit with Delegate=yes (docs/systemd.md)."))
  var beforeStart = false

  func run() throws {
    if beforeStart {
      do throws(CgroupError) { return try DelegatedGroup.prepareForStart() } catch {
        throw CommandFailure(exit: .notDone, text: "\(error)")
      }
    }
    let paths = DefaultPaths.ofThisProcess()
    let code = runDaemon(
      options: DaemonOptions(
        configuration: config ?? paths.configuration, mayBeAbsent: config == nil,
        socket: socket.flatMap { $0.isEmpty ? nil : $0 } ?? paths.socketFromEnvironment,
        defaultSocket: paths.socket(option: nil), stateDirectory: stateDirectory,
        defaultStateDirectory: paths.stateDirectory, policy: policy,
        policyDirectories: paths.policyDirectories))
    if code != 0 { throw ExitCode(code) }
  }
}

/// The options of `dormouse daemon`, with defaults filled in.
struct DaemonOptions: Sendable {
  var configuration: String
  /// The path is the default one, not an option: if the file doesn't exist, the configuration is empty.
  var mayBeAbsent: Bool
  /// nil: the configuration's, or else the default.
  var socket: String?
  var defaultSocket: String
  var stateDirectory: String?
  var defaultStateDirectory: String
  /// A name or a path; nil: the configuration's.
  var policy: String?
  /// The directories in which a policy is looked up by its name, in this order.
  var policyDirectories: [String]
}

/// Runs until the daemon ends; the exit code.
func runDaemon(options: DaemonOptions) -> Int32 {
  let environment = ProcessEnvironment.current().variables
  let load: @Sendable () -> ParseResult<DaemonConfiguration> = {
    let library = PolicyLibrary(directories: options.policyDirectories)
    if options.mayBeAbsent, isAbsent(options.configuration),
      !ConfigurationFiles.isThere(options.configuration)
    {
      return ConfigurationFile.parse(
        text: "", file: options.configuration, library: library, environment: environment,
        policy: options.policy)
    }
    return ConfigurationFile.load(
      path: options.configuration, library: library, environment: environment,
      policy: options.policy)
  }
  let loaded = load()
  PolicyCheck.complain(loaded.diagnostics)
  guard let configuration = loaded.value else { return CommandExit.badConfiguration.rawValue }
  if options.mayBeAbsent, isAbsent(options.configuration),
    !ConfigurationFiles.isThere(options.configuration)
  {
    Output.complain(
      "no configuration at \(escaped(options.configuration)): starting without workers "
        + "(`dormouse run` adds one, `dormouse reload` reads the file when it exists)")
  }
  do throws(StartError) {
    let daemon = try Daemon(
      DaemonSettings(
        configuration: configuration,
        stateDirectory: absolute(options.stateDirectory ?? configuration.stateDirectory)
          ?? options.defaultStateDirectory,
        socket: absolute(options.socket ?? configuration.socket) ?? options.defaultSocket,
        environment: environment, version: Dormouse.version, reload: load))
    try daemon.run()
    return CommandExit.done.rawValue
  } catch {
    Output.complain("\(error)")
    return CommandExit.cannotCreate.rawValue
  }
}

/// The daemon uses its paths later as well, and its workers have other working directories.
private func absolute(_ path: String?) -> String? {
  guard let path, let here = try? currentDirectory() else { return path }
  return absolutePath(path, in: here)
}
