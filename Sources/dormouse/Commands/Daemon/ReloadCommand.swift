import ArgumentParser
import Control

struct ReloadCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "reload",
    abstract: "Read the configuration again, or make workers read theirs.",
    discussion: """
      Without names, the daemon reads its own configuration again, as after SIGHUP. It takes all \
      of it, or nothing if there is an error. Policies, importance and shed channels apply at \
      once. Commands, directories, environments and readiness apply when a worker is started next; \
      `dormouse status NAME` shows what a running worker hasn't taken yet. New workers are \
      started, and workers that are no longer declared are stopped. A configuration without \
      workers is refused if the daemon has some, unless you give --allow-empty.

      With names or --all, the daemon sends these workers their `reload_signal`. A sleeping worker \
      is woken for it. If a worker reports its reload (RELOADING=1 and READY=1 of sd_notify), the \
      verb ends when the worker is ready again.
      """)

  @Flag(help: "Signal all workers that have a `reload_signal`.") var all = false
  @Flag(help: "Show what would change, and change nothing.") var dryRun = false
  @Flag(help: "Take a configuration without workers, too. It stops and removes all workers.")
  var allowEmpty = false
  @Flag(help: "Restart the workers whose new configuration needs it.") var restart = false
  @Flag(help: "Print JSON (docs/json.md).") var json = false
  @OptionGroup var connection: ConnectionOptions
  @Argument(
    help: "The workers: names, groups (@bots), or patterns such as 'bot0*'.", completion: .workers)
  var names: [String] = []

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
      let response = try daemon.request(verb) { $0.allowEmpty = allowEmpty ? true : nil }
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
    try daemon.apply("reload", to: selection, .reloadWorker) { [json] daemon, names in
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
      workers: attempts.map { $0.report(before, after) }, isDryRun: dryRun ? true : nil)
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
