import ArgumentParser
import Control
import PolicyFile

struct PolicyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "policy", abstract: "Check and show policies.",
    subcommands: [Check.self, Show.self])

  struct Check: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Check policy and configuration files, and say where they are wrong.")

    @Argument(
      help: ArgumentHelp(
        "Policy files, names of policies, or configurations (dormouse.yaml).", valueName: "file"))
    var policies: [String]

    func run() throws {
      let check = PolicyCheck.ofThisProcess()
      var passed = true
      for policy in policies { passed = try check.tell(policy) && passed }
      if !passed { throw ExitCode(CommandExit.badConfiguration.rawValue) }
    }
  }

  struct Show: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Show a policy with all of its defaults.")

    @Argument(help: ArgumentHelp("A policy's name, or a file.", valueName: "name"))
    var policy: String

    func run() throws {
      let result = PolicyCheck.ofThisProcess().policy(policy)
      PolicyCheck.complain(result.diagnostics)
      guard let value = result.value else {
        throw ExitCode(CommandExit.badConfiguration.rawValue)
      }
      try Output.write(PolicyFile.render(value))
    }
  }
}
