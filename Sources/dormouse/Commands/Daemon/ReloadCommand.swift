import ArgumentParser
import Control

struct ReloadCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "reload",
    abstract: "Read the configuration again, or make workers read theirs.",
    discussion: """
      Without names, the daemon's own configuration (as SIGHUP does): all of it is taken, or nothing. \
      Policies, importance and shed channels apply at once; commands, directories, environments and \
      readiness when a worker is started next. Workers that are new are started, workers that are no \
      longer declared are stopped. A configuration that declares no workers at all is refused where \
      there are some, unless --allow-empty is given.

      `dormouse status NAME` shows what a running worker has not taken yet, and --restart restarts these \
      workers at once.

      With names, each of these workers is sent its `reload_signal`, and woken for it if it sleeps; \
      answered when it is ready again, where it says so (sd_notify's RELOADING=1 and READY=1). With \
      --all, all workers that have one.
      """)

  @OptionGroup var connection: ConnectionOptions
  @Flag(help: "All workers that have a `reload_signal`.") var all = false
  @Flag(help: "Only show what would change.") var dryRun = false
  @Flag(help: "Take a configuration without workers, too: it stops and removes all of them.")
  var allowEmpty = false
  @Flag(help: "Restart the workers whose new configuration needs it.") var restart = false
  @Flag(help: "Print the outcome as JSON (docs/json.md).") var json = false
  @Argument(help: "Names of workers, or patterns such as 'bot0*'.", completion: .workers) var names:
    [String] = []

  func validate() throws {
    if restart, all || !names.isEmpty || dryRun {
      throw ValidationError("--restart is for the daemon's configuration: use it without names.")
    }
    if all, !names.isEmpty { throw ValidationError("Name workers or use --all, not both.") }
    if allowEmpty, all || !names.isEmpty {
      throw ValidationError("--allow-empty is for the daemon's own configuration: name no workers.")
    }
  }

  func run() throws {
    var daemon = try connection.connect()
    guard all || !names.isEmpty else {
      let verb = dryRun ? ControlRequest.Verb.previewReload : .reload
      let response = try daemon.request(verb, allowEmpty: allowEmpty)
      if json { return try reportAsJSON(response, &daemon) }
      try daemon.report(response, of: "reload", json: false, keepsLines: true)
      if restart {
        let attempts = try restartChanged(&daemon)
        for one in attempts where one.failure == nil {
          try Output.line("\(escaped(one.worker)): restarted")
        }
        try DaemonConnection.report(attempts.compactMap(\.failure))
      }
      return
    }
    var selection = WorkerSelection()
    (selection.all, selection.dryRun, selection.names) = (all, dryRun, names)
    selection.json = json
    try daemon.apply("reload", to: selection, .reload) { [json] daemon, names in
      try daemon.attempt(.reloadWorker, to: names, quietly: json)
    }
  }

  private func reportAsJSON(
    _ response: ControlResponse, _ daemon: inout DaemonConnection
  ) throws {
    let before = daemon.states()
    let isDone = response.result == .done
    let attempts = isDone && restart ? try restartChanged(&daemon) : []
    let after = attempts.isEmpty ? [:] : daemon.states()
    var report = OutcomeReport(
      verb: "reload",
      workers: attempts.map {
        OutcomeReport.Worker(
          worker: $0.worker, code: $0.code, text: $0.text, before: before[$0.worker],
          after: after[$0.worker])
      }, isDryRun: dryRun ? true : nil)
    if !isDone { report.code = response.result.code }
    report.text = response.text
    try Output.json(report)
    if !isDone { throw daemon.failure(response, of: nil, keepsLines: true) }
    try DaemonConnection.report(attempts.compactMap(\.failure))
  }

  private func restartChanged(_ daemon: inout DaemonConnection) throws -> [WorkerAttempt] {
    let changed = try daemon.ask(.ps).workers?.filter { worker in
      worker.state != "terminated" && worker.changedSinceLaunch != nil && worker.isAdopted != true
    }
    return try daemon.restart((changed ?? []).map(\.name), quietly: json)
  }
}
