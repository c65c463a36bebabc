import ArgumentParser
import Control
import Coordinator
import Glibc
import PolicyFile

struct DaemonCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "daemon", abstract: "Run the daemon, in the foreground.")

  @Option(
    help: ArgumentHelp(
      "The configuration.", discussion: "Default: dormouse.yaml in the configuration directory.",
      valueName: "file"))
  var config: String?
  @Option(help: ArgumentHelp("Where to listen for clients.", valueName: "path"))
  var socket: String?
  @Option(help: ArgumentHelp("For images, logs and the journal.", valueName: "directory"))
  var stateDirectory: String?
  @Option(help: ArgumentHelp("The policy, instead of the configuration's.", valueName: "name"))
  var policy: String?

  func run() throws {
    let paths = DefaultPaths.ofThisProcess()
    let code = runDaemon(
      options: DaemonOptions(
        configuration: config ?? paths.configuration,
        socket: socket ?? paths.socketFromEnvironment,
        defaultSocket: paths.socket(option: nil), stateDirectory: stateDirectory,
        defaultStateDirectory: paths.stateDirectory, policy: policy,
        policyDirectories: paths.policyDirectories))
    if code != 0 { throw ExitCode(code) }
  }
}

/// What `dormouse daemon` was asked for, defaults filled in.
struct DaemonOptions: Sendable {
  var configuration: String
  /// nil: as the configuration says, or else the default.
  var socket: String?
  var defaultSocket: String
  var stateDirectory: String?
  var defaultStateDirectory: String
  /// Name or path; nil: as the configuration says.
  var policy: String?
  /// Where a policy that is given by name is looked for, in this order.
  var policyDirectories: [String]
}

/// Runs until the daemon ends; the exit code.
func runDaemon(options: DaemonOptions) -> Int32 {
  let environment = ProcessEnvironment.current().variables
  let load: @Sendable () -> ParseResult<DaemonConfiguration> = {
    ConfigurationFile.load(
      path: options.configuration, library: PolicyLibrary(directories: options.policyDirectories),
      environment: environment, policy: options.policy)
  }
  let loaded = load()
  if !loaded.diagnostics.isEmpty { Output.standardError(loaded.rendered + "\n") }
  guard let configuration = loaded.value else { return CommandExit.badConfiguration.rawValue }
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

/// The daemon keeps its paths for long, and its workers have other directories.
private func absolute(_ path: String?) -> String? {
  guard let path, let here = try? currentDirectory() else { return path }
  return absolutePath(path, in: here)
}
