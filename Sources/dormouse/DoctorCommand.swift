import ArgumentParser
import Control

struct DoctorCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "doctor",
    abstract: "Say what this machine and user allow, and how to allow the rest.")

  func run() throws {
    let code = runDoctor(paths: DefaultPaths.ofThisProcess())
    if code != 0 { throw ExitCode(code) }
  }
}

/// Examines the machine and prints what it found; the exit code.
func runDoctor(paths: DefaultPaths) -> Int32 {
  Output.complain("`doctor` is not linked in this build")
  return CommandExit.internalError.rawValue
}
