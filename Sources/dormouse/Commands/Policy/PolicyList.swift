import ArgumentParser
import Control
import PolicyFile

struct PolicyListCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "list", abstract: "List the policies that have a name, and which one is active.",
    discussion: """
      The active policy is that of the daemon; without a daemon no policy is active. `policy:` in \
      the configuration and `dormouse reload` change it.

      Examples:
        dormouse policy list
        dormouse policy show server
      """)
  @Flag(help: "Print JSON (docs/json.md).") var json = false
  @OptionGroup var connection: ConnectionOptions

  func run() throws {
    let active = try activePolicy()
    let library = PolicyLibrary(directories: DefaultPaths.ofThisProcess().policyDirectories)
    var policies = library.names.map { name in
      PoliciesReport.Policy(
        name: name, summary: library.summary(of: name), file: library.path(of: name),
        isActive: name == active)
    }
    if let active, !policies.contains(where: \.isActive) {
      // The active policy is a file that was named by its path.
      policies.append(.init(name: active, summary: nil, file: nil, isActive: true))
    }
    try Output.show(PoliciesReport(policies: policies), asJSON: json) {
      renderPolicies($0.policies, width: $1, color: $2)
    }
  }

  /// Returns the daemon's policy; nil if no daemon answers.
  private func activePolicy() throws -> String? {
    guard connection.isNamed || connection.hasDaemon else { return nil }
    var daemon = try connection.connect()
    return try daemon.ask(.status).daemon?.policy
  }
}
