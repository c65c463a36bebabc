import ArgumentParser
import Control
import Daemon
import Glibc
import Linux
import PolicyFile

struct DaemonCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "daemon", abstract: "Run the daemon in the foreground.")

  @Option(
    help: ArgumentHelp(
      "The configuration.",
      discussion: """
        Default: $XDG_CONFIG_HOME/dormouse/dormouse.yaml, which is in ~/.config, or for root \
        /etc/dormouse/dormouse.yaml. Where that doesn't exist the daemon starts without workers, for \
        those of `dormouse run`, and `dormouse reload` reads the file once it is there. \
        A file called dormouse.yaml, or a directory that holds one, is read with the conf.d/*.yaml \
        beside it.
        """, valueName: "file"), completion: .file())
  var config: String?
  @Option(
    help: ArgumentHelp(
      "Where to listen for clients; they need the same option or DORMOUSE_CONTROL_SOCKET.",
      valueName: "path"), completion: .file())
  var socket: String?
  @Option(
    help: ArgumentHelp(
      "For images, logs and records of workers.",
      discussion: """
        Default: $XDG_STATE_HOME/dormouse, which is in ~/.local/state, or for root /var/lib/dormouse.
        """, valueName: "directory"), completion: .directory)
  var stateDirectory: String?
  @Option(
    help: ArgumentHelp(
      "The policy, instead of the configuration's: a name or a file.", valueName: "policy"),
    completion: .policies)
  var policy: String?
  @Flag(
    help: ArgumentHelp(
      "Only prepare the unit's cgroup for a daemon, and exit.",
      discussion: """
        For ExecStartPre= and ExecStopPost= of a unit with Delegate=yes. systemd before version 254 needs it to start \
        a daemon again beside living workers whose memory is limited (docs/systemd.md).
        """))
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
