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
  @Flag(help: "Only tell what would happen.") var dryRun = false

  func run() throws {
    var daemon = try connection.connect()
    if dryRun { return try forecast(&daemon) }
    try Output.line(escaped(daemon.ask(keepWorkers ? .leave : .shutdown).text))
  }

  private func forecast(_ daemon: inout DaemonConnection) throws {
    let workers = try daemon.ask(.ps).workers ?? []
    for worker in workers.filter(Intent.stop.concerns) {
      let kept = "\(escaped(worker.name)) would stay as it is: \(escaped(worker.state))"
      try Output.line(keepWorkers ? kept : Intent.stop.forecast(worker))
    }
    try Output.line("the daemon would end")
  }
}
