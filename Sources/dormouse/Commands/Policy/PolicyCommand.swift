import ArgumentParser
import Control
import PolicyFile

struct PolicyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "policy",
    abstract: "List, check, show, compare and improve policies and configurations.",
    subcommands: [
      PolicyListCommand.self, Check.self,
      PolicyShowCommand.self, PolicyDiffCommand.self, PolicySchemaCommand.self,
      PolicySuggestCommand.self,
    ])

  struct Check: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "check",
      abstract: "Check policy and configuration files, and show where their errors are.",
      discussion: """
        A configuration is checked together with the conf.d beside it. The exit code is 65 if \
        there is an error, and 0 if there are only warnings.

        Examples:
          dormouse policy check
          dormouse policy check dormouse.yaml mine.yaml
        """)

    @Flag(help: "Print JSON (docs/json.md).") var json = false
    @Argument(
      help: ArgumentHelp(
        "Policies, configurations, or directories of them. Default: the daemon's configuration.",
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
    discussion: """
      The exit code is 0 if there is no difference, and 1 if there is one, as for diff(1).

      Examples:
        dormouse policy diff ios-5 server
        dormouse policy diff server --set hibernate.after=5m
      """)

  @OptionGroup var settings: SettingOptions
  @Flag(help: "Print JSON (docs/json.md).") var json = false
  @Argument(
    help: ArgumentHelp(
      "The first: a policy's name, a file, or a configuration.", valueName: "left"),
    completion: .policies)
  var left: String
  @Argument(
    help: ArgumentHelp(
      "The second, in the same form, which --set changes. With --set the default is the first.",
      valueName: "right"),
    completion: .policies)
  var right: String?

  func validate() throws {
    if right == nil, settings.isEmpty {
      throw ValidationError("Name a second policy, or change the first by --set.")
    }
  }

  func run() throws {
    let right = right ?? left
    let (old, new) = (try PolicySubject.load(left), try PolicySubject.load(right))
    let differences = try PolicyFile.differences(
      from: old.policy(of: nil), to: settings.applied(to: new.policy(of: nil)))
    if json {
      try Output.json(PolicyDifferencesReport(differences: differences))
    } else if !differences.isEmpty {
      try Output.show {
        renderPolicyDifferences(
          differences, left: left, right: changed(right), width: $0, color: $1)
      }
    }
    if !differences.isEmpty { throw ExitCode(CommandExit.notDone.rawValue) }
  }

  /// The policy's name with its changes, for the heading.
  private func changed(_ name: String) -> String {
    ([name] + settings.settings.map { "--set \($0)" }).joined(separator: " ")
  }
}

struct PolicySchemaCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "schema", abstract: "Print the JSON Schema of a policy or a configuration.",
    discussion: """
      Editors complete and check YAML by it, if the first line of dormouse.yaml is \
      `# yaml-language-server: $schema=dormouse.schema.json`.

      Examples:
        dormouse policy schema --kind configuration > dormouse.schema.json
      """)

  @Option(help: "The kind of file that the schema describes.") var kind = JSONSchema.Kind.policy

  func run() throws { try Output.write(JSONSchema.text(kind)) }
}

extension JSONSchema.Kind: ExpressibleByArgument {}
