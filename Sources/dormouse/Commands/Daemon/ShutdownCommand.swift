import ArgumentParser
import Control

struct ShutdownCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "shutdown", abstract: "Stop all workers and end the daemon.",
    discussion: """
      With --keep-workers only the daemon ends. Running workers continue to run, sleeping ones \
      stay asleep, and the next daemon takes all of them over: that is how to upgrade Dormouse. If \
      no daemon follows, `dormouse recover` wakes the sleeping ones.
      """)

  @Flag(help: "End only the daemon, and leave the workers to the next one.")
  var keepWorkers = false
  @Flag(help: "Show what would happen, and change nothing.") var dryRun = false
  @Flag(help: "Print JSON (docs/json.md).") var json = false
  @OptionGroup var connection: ConnectionOptions

  func run() throws {
    var daemon = try connection.connect()
    if dryRun { return try daemon.forecastEnd("shutdown", keepsWorkers: keepWorkers, json: json) }
    try daemon.report(daemon.request(keepWorkers ? .leave : .shutdown), of: "shutdown", json: json)
  }
}

extension DaemonConnection {
  /// Prints the plan of `shutdown --dry-run` and `down --dry-run`.
  mutating func forecastEnd(_ verb: String, keepsWorkers: Bool, json: Bool) throws {
    let workers = try ask(.ps).workers ?? []
    let plans = workers.filter(ControlRequest.Verb.stop.concerns).map { worker in
      let kept = "\(escaped(worker.name)) would stay \(escaped(worker.state))"
      return OutcomeReport.Worker(
        worker: worker.name, code: "planned",
        text: keepsWorkers ? kept : ControlRequest.Verb.stop.forecast(worker), before: worker.state)
    }
    let end = "the daemon would end"
    if json {
      return try Output.json(
        OutcomeReport(verb: verb, code: "done", text: end, isDryRun: true, workers: plans))
    }
    for plan in plans { try Output.line(plan.text) }
    try Output.line(end)
  }
}
