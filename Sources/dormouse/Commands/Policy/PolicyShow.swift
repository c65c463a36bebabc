import ArgumentParser
import Control
import PolicyFile

/// `policy show`.
struct PolicyShowCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show",
    abstract: "Show a policy with all of its values.",
    discussion: """
      Without --effective or --json the output is a policy file. Of a configuration, the policy is \
      the one in effect: overrides applied, the worker's too.

      With --effective or --json, and without a name, the running daemon is asked which values it \
      applies now. That includes what no file says: idle times that it has raised for a worker \
      (`learned`), shadow mode set by a request (`request`), and the daemon's environment. Where \
      no daemon runs, the values are those of the files, and standard error says so.
      """)

  @OptionGroup var connection: ConnectionOptions
  @Flag(help: "Each value with the file and line, or the default, that it comes from.")
  var effective = false
  @Option(
    help: ArgumentHelp("As it holds for this worker.", valueName: "name"), completion: .workers)
  var worker: String?
  @Flag(help: "As JSON, with the origins.") var json = false
  @Argument(
    help: ArgumentHelp(
      "A policy's name, a file, or a configuration. Default: the running daemon's, or else the "
        + "daemon's configuration.",
      valueName: "name"), completion: .policies)
  var policy: String?

  func validate() throws {
    if policy != nil, connection.socket != nil {
      throw ValidationError("--socket asks a daemon, which a policy or file by name doesn't need.")
    }
  }

  func run() throws {
    if effective || json {
      let shown = try values()
      if json { return try Output.json(shown) }
      return try Output.write(renderPolicyValues(shown.values, color: Terminal.showsColor))
    }
    let subject = try PolicySubject.load(policy ?? PolicySubject.defaultConfiguration())
    try Output.write(PolicyFile.render(subject.policy(of: worker)))
  }

  private func values() throws -> PolicyValuesReport {
    if policy == nil, connection.socket != nil || connection.hasDaemon {
      var daemon = try connection.connect()
      let values = try daemon.ask(.policy, worker: worker).policy
      guard let values else { throw CommandFailure.noReport(of: "the policy") }
      return PolicyValuesReport(source: .daemon, worker: worker, values: values)
    }
    let place = try policy ?? PolicySubject.defaultConfiguration()
    if policy == nil {
      Output.complain("no daemon is running; these are the values of \(escaped(place))")
    }
    let values = try PolicySubject.load(place).values(of: worker)
    return PolicyValuesReport(
      source: .files, worker: worker, values: values.map(PolicyValueReport.init))
  }
}

extension PolicyValueReport {
  fileprivate init(_ value: EffectiveValue) {
    self.init(
      key: value.path, value: value.text, from: value.origin.layer.rawValue,
      file: value.origin.file, line: value.origin.position?.line)
  }
}
