import ArgumentParser
import Control
import PolicyFile

struct PolicyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "policy", abstract: "Check, show and compare policies and configurations.",
    subcommands: [
      Check.self, PolicyShowCommand.self, PolicyDiffCommand.self, PolicySchemaCommand.self,
    ])

  struct Check: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "check",
      abstract: "Check policy and configuration files, and say where they are wrong.",
      discussion: """
        A configuration is checked together with the conf.d beside it. Ends with 65 where there is \
        an error; warnings alone are no reason.
        """)

    @Flag(help: "As JSON, with what is wrong (docs/json.md).") var json = false
    @Argument(
      help: ArgumentHelp(
        "Policies, configurations, or directories of either. Default: the daemon's configuration.",
        valueName: "file"), completion: .policies)
    var policies: [String] = []

    func run() throws {
      var check = PolicyCheck.ofThisProcess()
      check.json = json
      let subjects =
        policies.isEmpty ? [try PolicySubject.defaultConfiguration()] : policies
      for subject in subjects { try check.report(subject) }
      if json { try Output.json(check.report) } else { check.printTotals() }
      if check.errors > 0 { throw ExitCode(CommandExit.badConfiguration.rawValue) }
    }
  }
}

struct PolicyDiffCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "diff", abstract: "Show the values in which two policies differ.",
    discussion: "As diff(1), ends with 0 where there is no difference, and with 1 where there is.")

  @Flag(help: "As JSON.") var json = false
  @Argument(
    help: ArgumentHelp("A policy's name, a file, or a configuration.", valueName: "left"),
    completion: .policies)
  var left: String
  @Argument(
    help: ArgumentHelp("What to compare it with.", valueName: "right"), completion: .policies)
  var right: String

  func run() throws {
    let (old, new) = (try PolicySubject.load(left), try PolicySubject.load(right))
    let differences = try PolicyFile.differences(
      from: old.policy(of: nil), to: new.policy(of: nil))
    let reports = differences.map {
      PolicyDifferenceReport(
        key: $0.path, left: $0.left ?? "", right: $0.right ?? "", meaning: $0.meaning)
    }
    if json {
      try Output.json(PolicyDifferencesReport(differences: reports))
    } else if !reports.isEmpty {
      try Output.write(
        renderPolicyDifferences(reports, left: left, right: right, color: Terminal.showsColor))
    }
    if !reports.isEmpty { throw ExitCode(CommandExit.notDone.rawValue) }
  }
}

struct PolicySchemaCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "schema", abstract: "Print the JSON Schema of a policy or a configuration.",
    discussion: """
      For editors: `dormouse policy schema --kind configuration > dormouse.schema.json`, and as the \
      first line of dormouse.yaml: `# yaml-language-server: $schema=dormouse.schema.json`.
      """)

  @Option(help: "Of which file: policy or configuration.") var kind = JSONSchema.Kind.policy

  func run() throws { try Output.write(JSONSchema.text(kind)) }
}

extension JSONSchema.Kind: ExpressibleByArgument {}
