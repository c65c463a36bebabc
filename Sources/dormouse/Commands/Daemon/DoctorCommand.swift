import ArgumentParser
import Control
import Doctor

struct DoctorCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "doctor",
    abstract: "Test what this machine and user allow, and show how to enable the rest.",
    discussion: """
      Everything is tried, nothing is left behind, and no daemon is needed. Exit code 0 when \
      hibernation works in some way, 69 when it doesn't.
      """)

  @Flag(help: "As JSON (docs/doctor.md).") var json = false
  @Flag(name: .shortAndLong, help: "Everything that was tried, and what is lost without it.")
  var verbose = false
  @Option(help: ArgumentHelp("As the daemon's.", valueName: "path"), completion: .file())
  var socket: String?
  @Option(help: ArgumentHelp("As the daemon's.", valueName: "directory"), completion: .directory)
  var stateDirectory: String?

  func run() throws {
    let paths = DefaultPaths.ofThisProcess()
    let report = Doctor.examine(
      stateDirectory: stateDirectory ?? paths.stateDirectory,
      socket: paths.socket(option: socket))
    if json {
      try Output.json(report)
    } else {
      try Output.write(
        report.rendered(
          width: Terminal.width ?? 100, color: Terminal.showsColor, isVerbose: verbose))
    }
    if !report.hibernates { throw ExitCode(CommandExit.missingMechanism.rawValue) }
  }
}
