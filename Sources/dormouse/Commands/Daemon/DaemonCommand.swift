import ArgumentParser
import Control
import Daemon
import Glibc
import Linux
import PolicyFile

struct DaemonCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "daemon", abstract: "Run the daemon, in the foreground or with --detach.",
    discussion: """
      The daemon starts the workers of the configuration and manages them until SIGTERM, SIGINT or \
      `dormouse shutdown`. Without a configuration it starts with no workers; `dormouse run` adds \
      them.

      A file called dormouse.yaml, or a directory that holds one, is read with the conf.d/*.yaml \
      beside it. SIGHUP and `dormouse reload` read all of them again.

      With --detach the daemon runs in the background, and the verb ends when it answers. It \
      prints the daemon's pid and the file with its messages: daemon.log in the state directory. \
      If a daemon runs already, the exit code is 73. `dormouse run` starts a daemon in the same way.

      Examples:
        dormouse daemon
        dormouse daemon -d
        dormouse daemon --config dormouse.yaml --policy server
      """)

  @Flag(
    name: .shortAndLong, help: "Run it in the background, and end when it answers.")
  var detach = false
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

  @Flag(
    help: ArgumentHelp(
      "Start no worker, and take over those that an earlier daemon has left.", visibility: .hidden))
  var takeOverOnly = false

  func validate() throws {
    if detach, beforeStart { throw ValidationError("--detach or --before-start, not both.") }
  }

  func run() throws {
    if beforeStart {
      do throws(CgroupError) { return try DelegatedGroup.prepareForStart() } catch {
        throw CommandFailure(.notDone, "\(error)")
      }
    }
    var options = DaemonOptions.standard(DefaultPaths.ofThisProcess())
    if let config { (options.configuration, options.mayBeAbsent) = (config, false) }
    if let socket, !socket.isEmpty { options.socket = socket }
    options.stateDirectory = stateDirectory
    options.policy = policy
    options.takesOverOnly = takeOverOnly
    if detach { return try runInBackground(options) }
    let code = runDaemon(options: options)
    if code != 0 { throw ExitCode(code) }
  }

  private func runInBackground(_ options: DaemonOptions) throws {
    let daemon = try options.inBackground()
    guard let process = try daemon.start() else {
      throw CommandFailure(
        .cannotCreate,
        "a daemon answers at \(escaped(daemon.socket)) already; stop it with `dormouse "
          + "shutdown`, or give this one another --socket and --state-directory")
    }
    try Output.line(
      "the daemon runs in the background (pid \(process.pid), messages in "
        + "\(escaped(daemon.log)))")
  }
}

/// Runs the daemon until it ends, and returns the exit code.
func runDaemon(options: DaemonOptions) -> Int32 {
  do throws(StartError) {
    guard let daemon = try makeDaemon(options) else { return CommandExit.badConfiguration.rawValue }
    try daemon.run()
    return CommandExit.done.rawValue
  } catch {
    Output.complain("\(error)")
    return CommandExit.cannotCreate.rawValue
  }
}

/// Returns `nil` if the configuration has errors. What was read must not live as long as the
/// daemon, which has the parts that it needs.
private func makeDaemon(_ options: DaemonOptions) throws(StartError) -> Daemon? {
  let environment = ProcessEnvironment.current().variables
  let loaded = options.load(environment)
  PolicyCheck.complain(loaded.diagnostics)
  guard var configuration = loaded.value else { return nil }
  if options.takesOverOnly {
    for index in configuration.workers.indices { configuration.workers[index].autostart = false }
  }
  if options.isWithoutFile {
    Output.complain(
      "no configuration at \(escaped(options.configuration)): starting without workers "
        + "(`dormouse run` adds one, `dormouse reload` reads the file when it exists)")
  }
  let paths = options.paths(configuration)
  return try Daemon(
    DaemonSettings(
      configuration: configuration, stateDirectory: paths.state, socket: paths.socket,
      environment: environment, version: Dormouse.version, reload: { options.load(environment) }))
}
