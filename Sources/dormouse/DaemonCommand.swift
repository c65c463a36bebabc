import ArgumentParser
import Control

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
        configuration: config ?? paths.configuration, socket: paths.socket(option: socket),
        stateDirectory: stateDirectory ?? paths.stateDirectory, policy: policy,
        policyDirectories: paths.policyDirectories))
    if code != 0 { throw ExitCode(code) }
  }
}

/// What `dormouse daemon` was asked for, defaults filled in.
struct DaemonOptions {
  var configuration: String
  var socket: String
  var stateDirectory: String
  /// Name or path; nil: as the configuration says.
  var policy: String?
  /// Where a policy that is given by name is looked for, in this order.
  var policyDirectories: [String]
}

/// Runs until the daemon ends; the exit code.
func runDaemon(options: DaemonOptions) -> Int32 {
  Output.complain("the daemon is not linked in this build")
  return CommandExit.internalError.rawValue
}
