import ArgumentParser
import Control
import Daemon
import Glibc
import Linux

struct RecoverCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "recover",
    abstract: "Wake the workers that a daemon has left asleep, if no other daemon follows.",
    discussion: """
      Sleeping workers are woken and keep running, unmanaged; a daemon that is started later finds \
      them. Does nothing while a daemon runs. Run it by hand, or from a unit that OnFailure= of the \
      daemon's unit names, as dormouse-recover.service does. Don't use ExecStopPost=: systemd runs that \
      before each restart, too, and every sleeping worker would be woken.
      """)

  @Option(
    help: ArgumentHelp(
      "The daemon's state directory.",
      discussion: """
        Default: $XDG_STATE_HOME/dormouse, which is in ~/.local/state, or for root /var/lib/dormouse.
        """, valueName: "directory"), completion: .directory)
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
        return try Output.line("nothing to recover: a daemon runs with \(escaped(path))")
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
        // Output that can't be written doesn't stop the recovery.
        try? Output.line(escaped(outcome.text))
      }
    }
    if count == 0 { try Output.line("nothing to recover: no worker of \(escaped(path)) runs") }
    if failures > 0 { throw ExitCode(CommandExit.notDone.rawValue) }
  }
}
