import ArgumentParser
import Control

struct RemoveCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rm", abstract: "Remove workers of `run` that have ended, with their logs.",
    discussion: """
      A worker that runs is refused; with --force it is stopped first. What `run --save` has added \
      to a configuration is removed there, too, and the daemon reads it again if it has the worker \
      from there. Any other worker of a configuration is removed by hand. The history keeps the \
      events of removed workers.

      Examples:
        dormouse rm bot
        dormouse rm -f 'bot*'
      """)
  @Flag(name: .shortAndLong, help: "Stop workers that run, and remove them then.")
  var force = false
  @OptionGroup var selection: WorkerSelection

  func validate() throws {
    try selection.check()
    if selection.all { throw ValidationError("Name the workers to remove; a pattern is '*'.") }
  }

  func run() throws {
    var daemon = try selection.connection.connect()
    try daemon.apply("rm", to: selection, force ? .removeRunning : .remove) { daemon, names in
      let states = daemon.states()
      return try daemon.attempt(
        force ? .removeRunning : .remove, to: names, quietly: selection.json
      ).map { attempt in
        if attempt.failure == nil { return try removed(attempt, &daemon) }
        let mayRemove = force || states[attempt.worker] == "terminated"
        return attempt.code == "refused" && mayRemove ? try undeclared(attempt, &daemon) : attempt
      }
    }
  }

  /// Removes the worker from the configuration after the daemon has removed it.
  private func removed(
    _ attempt: WorkerAttempt, _ daemon: inout DaemonConnection
  ) throws -> WorkerAttempt {
    var attempt = attempt
    switch try RunToSave.remove(attempt.worker, of: &daemon) {
    case .done(let text, _):
      if !selection.json { try Output.line(text) }
      attempt.text += "; \(text)"
    case .stays(let text):
      Output.complain(text)
      attempt.text += "; \(text)"
    case nil: break
    }
    return attempt
  }

  /// Removes the worker from the configuration that the daemon has it from, and makes the daemon
  /// read that again.
  private func undeclared(
    _ attempt: WorkerAttempt, _ daemon: inout DaemonConnection
  ) throws -> WorkerAttempt {
    guard
      case .done(let text, let leavesNone) = try RunToSave.remove(attempt.worker, of: &daemon)
    else { return attempt }
    let response = try daemon.request(.reload) {
      $0.allowEmpty = leavesNone ? true : nil
    }
    let whole = "\(text); \(response.text)"
    let isDone = response.result == .done
    if isDone, !selection.json { try Output.line(escaped(whole)) }
    return WorkerAttempt(
      worker: attempt.worker, code: response.result.code, text: whole,
      failure: isDone ? nil : CommandFailure(response.result.exit, escaped(whole)))
  }
}
