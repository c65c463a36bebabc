import ArgumentParser
import Control
import Glibc

struct RunCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "run",
    abstract: "Start a command as a new worker.",
    usage: "dormouse run <name> [<options>] -- <command> [<arguments> ...]",
    discussion: """
      The command is looked up in your PATH, and gets your environment and directory. It belongs \
      to the daemon from then on; answered when it is ready.
      """)

  @OptionGroup var connection: ConnectionOptions
  @Argument(help: "What the worker shall be called.")
  var name: String
  @Option(help: "0-100: raises it among workers of the same state when memory runs out.")
  var importance: Int?
  @Option(help: "Its working directory, instead of this one.", completion: .directory)
  var directory: String?
  @Option(
    name: .customLong("env"),
    help: ArgumentHelp("A variable to add to its environment; repeatable.", valueName: "name=value")
  )
  var variables: [String] = []
  @Flag(help: "Give it NOTIFY_SOCKET (sd_notify), to send STATUS= and the like.")
  var notify = false
  @Flag(help: "Print the outcome as JSON (docs/json.md).") var json = false
  @Argument(parsing: .postTerminator, help: "The command and its arguments, after `--`.")
  var command: [String]

  func validate() throws {
    if name.isEmpty { throw ValidationError("A worker needs a name.") }
    if let importance, !(0...100).contains(importance) {
      throw ValidationError("--importance is a number from 0 to 100, not \(importance).")
    }
    for variable in variables where !variable.dropFirst().contains("=") {
      throw ValidationError("--env takes NAME=VALUE, not '\(escaped(variable))'.")
    }
  }

  func run() throws {
    let launch = try specification()
    var daemon = try connection.connect()
    try daemon.report(
      daemon.request(.run, worker: name, launch: launch), of: "run", worker: name, json: json)
  }

  private func specification() throws -> LaunchSpecification {
    let here = try currentDirectory()
    let inherited = ProcessEnvironment.current()
    for name in inherited.unusable {
      Output.complain("the variable \(escaped(name)) isn't UTF-8, and is left out")
    }
    var environment = inherited.variables
    for variable in variables {
      guard let equals = variable.dropFirst().firstIndex(of: "=") else { continue }
      environment[String(variable[..<equals])] = String(variable[variable.index(after: equals)...])
    }
    return LaunchSpecification(
      command: [try locate(in: here, path: inherited.variables["PATH"])] + command.dropFirst(),
      directory: directory.map { absolutePath($0, in: here) } ?? here,
      environment: environment, importance: importance, notify: notify ? true : nil)
  }

  private func locate(in here: String, path: String?) throws -> String {
    do {
      return try locateCommand(command.first ?? "", searchPath: path, directory: here)
    } catch {
      throw CommandFailure(exit: .notDone, text: error.description)
    }
  }
}
