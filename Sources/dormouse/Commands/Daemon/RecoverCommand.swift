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
      "The daemon's state directory. Default: the `state_directory` of the configuration, and "
        + "dormouse in $XDG_STATE_HOME or ~/.local/state (root: in /var/lib).",
      valueName: "directory"), completion: .directory)
  var stateDirectory: String?

  @Flag(help: "Print JSON (docs/json.md).") var json = false

  func run() throws {
    var outcomes: [OfflineRecovery.Outcome] = []
    var obstacles: [Obstacle] = []
    for directory in directories {
      let path = try absolutePath(directory, in: currentDirectory())
      if let obstacle = try recover(path, &outcomes) { obstacles.append(obstacle) }
    }
    if outcomes.isEmpty {
      return try showNothing(obstacles.map(\.description).joined(separator: "; "))
    }
    for obstacle in obstacles {
      if case .inUse = obstacle { Output.complain("\(obstacle)") }
    }
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

  /// The directories in which a daemon may have left workers. The configuration may have changed
  /// since its start.
  private var directories: [String] {
    if let stateDirectory { return [stateDirectory] }
    let paths = DefaultPaths.ofThisProcess()
    let configured = paths.configuredStateDirectory
    return (configured.map { [$0] } ?? []) + [paths.stateDirectory].filter { $0 != configured }
  }

  /// Why there is nothing to recover in a state directory.
  private enum Obstacle: CustomStringConvertible {
    case absent(String)
    case inUse(String)
    case idle(String)

    var description: String {
      switch self {
      case .absent(let path): "there is no \(escaped(path))"
      case .inUse(let path): "a daemon runs with \(escaped(path))"
      case .idle(let path): "no worker of \(escaped(path)) runs"
      }
    }
  }

  /// Wakes the workers of one state directory.
  private func recover(
    _ path: String, _ outcomes: inout [OfflineRecovery.Outcome]
  ) throws -> Obstacle? {
    if isAbsent(path) { return .absent(path) }
    var recovery: OfflineRecovery
    do throws(StartError) { recovery = try openState(path) } catch {
      guard case .inUse = error else {
        throw CommandFailure(.cannotCreate, escaped("\(error)"))
      }
      return .inUse(path)
    }
    var count = 0
    recovery.run { outcome in
      count += 1
      outcomes.append(outcome)
      if outcome.isFailure {
        Output.complain(escaped(outcome.text))
      } else if !json {
        // Output that can't be written doesn't stop the recovery.
        try? Output.line(escaped(outcome.text))
      }
    }
    return count == 0 ? .idle(path) : nil
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
