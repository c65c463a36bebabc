import ArgumentParser
import Control
import Coordinator
import Glibc
import Linux

struct RecoverCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "recover",
    abstract: "Wake the workers of a daemon that is gone, where none follows it.",
    discussion: """
      What sleeps is brought back and runs on, with nobody who looks after it; a daemon that is \
      started later finds it. Does nothing while a daemon runs. Meant for the hand, and for \
      ExecStopPost= in a unit of systemd.
      """)

  @Option(
    help: ArgumentHelp(
      "The daemon's state directory.",
      discussion: """
        Default: $XDG_STATE_HOME/dormouse, which is in ~/.local/state, or for root /var/lib/dormouse.
        """, valueName: "directory"))
  var stateDirectory: String?

  func run() throws {
    let path = try absolutePath(
      stateDirectory ?? DefaultPaths.ofThisProcess().stateDirectory, in: currentDirectory())
    if isAbsent(path) {
      return try Output.line("nothing to recover: there is no \(escaped(path))")
    }
    var rescue: Rescue
    do throws(StartError) { rescue = try Rescue(stateDirectory: path) } catch {
      if case .inUse = error {
        return try Output.line("nothing to recover: a daemon looks after \(escaped(path))")
      }
      throw CommandFailure(exit: .cannotCreate, text: escaped("\(error)"))
    }
    var count = 0
    var failures = 0
    rescue.run { outcome in
      count += 1
      if outcome.isFailure {
        failures += 1
        Output.complain(escaped(outcome.text))
      } else {
        try? Output.line(escaped(outcome.text))
      }
    }
    if count == 0 { try Output.line("nothing to recover: no worker of \(escaped(path)) runs") }
    if failures > 0 { throw ExitCode(CommandExit.notDone.rawValue) }
  }
}
