import ArgumentParser
import Control

struct RemoveCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rm", abstract: "Remove workers of `run` that have ended, with their logs.",
    discussion: """
      A worker that runs is refused; with --force it is stopped first. A worker of a configuration is \
      removed there. The history keeps what happened to removed workers.

      Examples:
        dormouse rm bot
        dormouse rm -f 'bot*'
      """)
  @Flag(name: .shortAndLong, help: "Stop workers that run, and remove them then.")
  var force = false
  @OptionGroup var selection: WorkerSelection
  @OptionGroup var connection: ConnectionOptions

  func validate() throws {
    try selection.check()
    if selection.all { throw ValidationError("Name the workers to remove; a pattern is '*'.") }
  }

  func run() throws {
    var daemon = try connection.connect()
    let (json, force) = (selection.json, force)
    try daemon.apply("rm", to: selection, force ? .removeRunning : .remove) { daemon, names in
      try daemon.attempt(force ? .removeRunning : .remove, to: names, quietly: json)
    }
  }
}
