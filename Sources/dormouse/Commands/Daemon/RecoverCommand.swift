import ArgumentParser
import Control
import Daemon
import Linux

struct RecoverCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "recover",
    abstract: "Wake the workers that a daemon has left asleep, if no other daemon follows.",
    discussion: """
      The woken workers run without a manager; a daemon that is started later finds them. While a \
      daemon runs, the verb does nothing. Run it by hand, or from a unit that OnFailure= of the \
      daemon's unit names, as dormouse-recover.service does. Don't use ExecStopPost=: systemd runs \
      that before each restart, too, and all sleeping workers would be woken.
      """)

  @Option(
    help: ArgumentHelp(
      "The daemon's state directory. Default: dormouse in $XDG_STATE_HOME or ~/.local/state (root: "
        + "in /var/lib).",
      valueName: "directory"), completion: .directory)
  var stateDirectory: String?

  @Flag(help: "Print JSON (docs/json.md).") var json = false

  func run() throws {
    let path = try absolutePath(
      stateDirectory ?? DefaultPaths.ofThisProcess().stateDirectory, in: currentDirectory())
    if isAbsent(path) { return try showNothing("there is no \(escaped(path))") }
    var recovery: OfflineRecovery
    do throws(StartError) { recovery = try openState(path) } catch {
      if case .inUse = error {
        return try showNothing("a daemon runs with \(escaped(path))")
      }
      throw CommandFailure(.cannotCreate, escaped("\(error)"))
    }
    var outcomes: [OfflineRecovery.Outcome] = []
    recovery.run { outcome in
      outcomes.append(outcome)
      if outcome.isFailure {
        Output.complain(escaped(outcome.text))
      } else if !json {
        // Output that can't be written doesn't stop the recovery.
        try? Output.line(escaped(outcome.text))
      }
    }
    if outcomes.isEmpty { return try showNothing("no worker of \(escaped(path)) runs") }
    if json {
      try Output.json(
        OutcomeReport(
          verb: "recover",
          workers: outcomes.map {
            OutcomeReport.Worker(
              worker: $0.worker ?? "", code: $0.isFailure ? "failed" : "done", text: $0.text)
          }))
    }
    if outcomes.contains(where: \.isFailure) { throw ExitCode(CommandExit.notDone.rawValue) }
  }

  /// Opens the state directory. A daemon that has answered `shutdown --keep-workers` keeps it
  /// locked for a moment longer.
  private func openState(_ path: String) throws(StartError) -> OfflineRecovery {
    let deadline = Deadline(in: .seconds(2))
    while true {
      do throws(StartError) { return try OfflineRecovery(stateDirectory: path) } catch {
        guard case .inUse = error, !deadline.hasPassed else { throw error }
        pauseThread(for: .milliseconds(20))
      }
    }
  }

  private func showNothing(_ reason: String) throws {
    let text = "nothing to recover: \(reason)"
    if !json { return try Output.line(text) }
    try Output.json(OutcomeReport(verb: "recover", code: "nothing_to_do", text: text))
  }
}
