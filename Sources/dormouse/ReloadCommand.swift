import ArgumentParser
import Control

struct ReloadCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "reload",
    abstract: "Read the configuration again, or tell workers to read theirs.",
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
  @Flag(help: "Only tell what would change.") var dryRun = false
  @Flag(help: "Take a configuration without workers, too: it stops and removes all of them.")
  var allowEmpty = false
  @Flag(help: "Restart the workers whose new configuration needs it.") var restart = false
  @Argument(help: "Names of workers.", completion: .workers) var names: [String] = []

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
      try Output.line(escaped(daemon.ask(verb, allowEmpty: allowEmpty, keepsLines: true).text))
      if restart { try restartChanged(&daemon) }
      return
    }
    var selection = WorkerSelection()
    (selection.all, selection.dryRun, selection.names) = (all, dryRun, names)
    try daemon.apply(.reloadWorker, to: selection.resolve(.reload, with: &daemon))
  }

  private func restartChanged(_ daemon: inout DaemonConnection) throws {
    let changed = try daemon.ask(.ps).workers?.filter { worker in
      worker.state != "terminated" && worker.changedSinceLaunch != nil && worker.isAdopted != true
    }
    let stopped = try daemon.attempt(.stop, to: (changed ?? []).map(\.name))
    let started = try daemon.attempt(.restart, to: stopped.done)
    for name in started.done { try Output.line("\(escaped(name)): restarted") }
    try DaemonConnection.tell(stopped.failures + started.failures)
  }
}
