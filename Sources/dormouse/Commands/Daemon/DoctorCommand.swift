import ArgumentParser
import Control
import Doctor

struct DoctorCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "doctor",
    abstract: "Test what this machine and user allow, and show how to enable the rest.",
    discussion: """
      If a daemon runs, the daemon tries each mechanism as its own user, in its own cgroup and \
      with its own rights, and `doctor` shows where this shell differs. Without a daemon, or with \
      --shell, only this shell is examined. Each mechanism is really tried, and nothing is left \
      behind. The exit code is 0 if hibernation works in some way, and 69 if it doesn't.

      Examples:
        dormouse doctor
        dormouse doctor --verbose --shell
      """)

  @Flag(name: .shortAndLong, help: "Show all that was tried, and what is lost without it.")
  var verbose = false
  @Flag(help: "Examine this shell, and ask no daemon.") var shell = false
  @Option(
    help: ArgumentHelp(
      "Examine this state directory. Default: that of `dormouse daemon`.", valueName: "directory"),
    completion: .directory)
  var stateDirectory: String?
  @Flag(help: "Print JSON (docs/doctor.md).") var json = false
  @Option(
    help: ArgumentHelp(
      "The daemon's control socket. Default: that of `dormouse daemon`.", valueName: "path"),
    completion: .file())
  var socket: String?

  func run() throws {
    let paths = DefaultPaths.ofThisProcess()
    let path = paths.socket(option: socket)
    let examination = shell ? nil : Self.ask(path, isNamed: socket != nil)
    let shellReport = Doctor.examine(
      stateDirectory: stateDirectory ?? paths.configuredStateDirectory ?? paths.stateDirectory,
      socket: path)
    let document =
      examination.map { DoctorDocument(daemon: $0, shell: shellReport) }
      ?? DoctorDocument(shell: shellReport)
    if json {
      try Output.json(document)
    } else {
      try Output.write(
        document.rendered(
          width: Terminal.width ?? 100, color: Terminal.showsColor, isVerbose: verbose))
    }
    if !document.report.hibernates { throw ExitCode(CommandExit.missingMechanism.rawValue) }
  }

  /// Asks the daemon for its examination. The result is nil if no daemon runs, or if it can't be
  /// asked. The second case is reported.
  private static func ask(_ path: String, isNamed: Bool) -> DaemonExamination? {
    do throws(ControlError) {
      var client = try ControlClient(connectingTo: path, isNamed: isNamed)
      let response = try client.perform(.doctor, timeout: .seconds(60))
      if let examination = response.doctor { return examination }
      complain(response.text)
    } catch {
      switch error {
      // No daemon can listen there, and the checks report that.
      case .noDaemon, .pathTooLong: break
      default: complain(error.description)
      }
    }
    return nil
  }

  private static func complain(_ reason: String) {
    Output.complain(
      "the daemon couldn't be asked, so this is what this shell allows: \(escaped(reason))")
  }
}
