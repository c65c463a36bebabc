import ArgumentParser
import Control

struct ShutdownCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "shutdown", abstract: "Stop all workers and end the daemon.",
    discussion: """
      With --keep-workers only the daemon ends: running workers run on, sleeping ones sleep on, and \
      the next daemon takes them all over. That is how to upgrade Dormouse under its workers. If no \
      daemon follows, `dormouse recover` wakes them.
      """)

  @OptionGroup var connection: ConnectionOptions
  @Flag(help: "Leave the workers to the next daemon.") var keepWorkers = false

  func run() throws {
    var daemon = try connection.connect()
    try Output.line(escaped(daemon.ask(keepWorkers ? .leave : .shutdown).text))
  }
}
