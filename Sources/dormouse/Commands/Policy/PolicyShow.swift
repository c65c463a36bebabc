import ArgumentParser
import Control
import Daemon
import PolicyFile

/// The verb `policy show`.
struct PolicyShowCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show",
    abstract: "Show a policy with all of its values.",
    discussion: """
      Without --effective and --json it prints a policy file. For a configuration, that is its \
      policy with all overrides applied, also the worker's.

      With --effective or --json, and without a name, the running daemon answers which values it \
      applies now. Some are in no file: idle times that it has raised for a worker (`learned`), \
      shadow mode by request (`request`), and its environment (`environment`). If no daemon runs, \
      the values are those of the files, and standard error reports that.

      With --set the values are those of the files, with these changes; no daemon is asked.

      Examples:
        dormouse policy show server
        dormouse policy show server --set hibernate.after=5m
        dormouse policy show --effective --worker web
      """)

  @Flag(help: "Show each value with the file and line that sets it, or as a default.")
  var effective = false
  @Option(
    help: ArgumentHelp("Show the values for this worker.", valueName: "name"),
    completion: .workers)
  var worker: String?
  @OptionGroup var settings: SettingOptions
  @Flag(help: "Print JSON, with the origins (docs/json.md).") var json = false
  @OptionGroup var connection: ConnectionOptions
  @Argument(
    help: ArgumentHelp(
      "A policy's name, a file, or a configuration. Default: the running daemon's, or else the "
        + "daemon's configuration file.",
      valueName: "name"), completion: .policies)
  var policy: String?

  func validate() throws {
    if policy != nil, connection.socket != nil {
      throw ValidationError("--socket asks a daemon, which a policy or file by name doesn't need.")
    }
    if !settings.isEmpty, connection.socket != nil {
      throw ValidationError("--socket asks a daemon, whose values --set doesn't change.")
    }
  }

  func run() throws {
    try settings.check()
    if effective || json {
      let shown = try values()
      return try Output.show(shown, asJSON: json) {
        renderPolicyValues($0.values, width: $1, color: $2)
      }
    }
    let subject = try PolicySubject.load(policy ?? PolicySubject.defaultConfiguration())
    try Output.write(PolicyFile.render(settings.applied(to: subject.policy(of: worker))))
  }

  private func values() throws -> PolicyValuesReport {
    if policy == nil, settings.isEmpty, connection.socket != nil || connection.hasDaemon {
      var daemon = try connection.connect()
      let values = try daemon.ask(.policy, worker: worker, for: \.policy, about: "the policy")
      return PolicyValuesReport(source: .daemon, worker: worker, values: values)
    }
    let path = try policy ?? PolicySubject.defaultConfiguration()
    if policy == nil, settings.isEmpty {
      Output.complain("no daemon is running; these are the values of \(escaped(path))")
    }
    let subject = try PolicySubject.load(path)
    let values = try settings.applied(
      to: subject.values(of: worker), of: subject.policy(of: worker))
    return PolicyValuesReport(
      source: .files, worker: worker, values: values.map(PolicyValueReport.init))
  }
}
