import ArgumentParser
import Control

struct PolicyCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "policy", abstract: "Check and show policies.",
    subcommands: [Check.self, Show.self])

  struct Check: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Check policy files, and say where they are wrong.")

    @Argument(help: ArgumentHelp("Policy files, or names of policies.", valueName: "file"))
    var policies: [String]

    func run() throws {
      let code = checkPolicies(policies, in: DefaultPaths.ofThisProcess().policyDirectories)
      if code != 0 { throw ExitCode(code) }
    }
  }

  struct Show: ParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Show a policy with all of its defaults.")

    @Argument(help: ArgumentHelp("A policy's name, or a file.", valueName: "name"))
    var policy: String

    func run() throws {
      let code = showPolicy(policy, in: DefaultPaths.ofThisProcess().policyDirectories)
      if code != 0 { throw ExitCode(code) }
    }
  }
}

/// Checks policies given by file or by name, and prints diagnostics; the exit code.
func checkPolicies(_ policies: [String], in directories: [String]) -> Int32 {
  Output.complain("`policy check` is not linked in this build")
  return CommandExit.internalError.rawValue
}

/// Prints one policy; the exit code.
func showPolicy(_ policy: String, in directories: [String]) -> Int32 {
  Output.complain("`policy show` is not linked in this build")
  return CommandExit.internalError.rawValue
}
