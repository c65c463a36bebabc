import ArgumentParser
import Control
import Glibc

struct RunCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "run",
    abstract: "Start a command as a new worker.",
    usage: "dormouse run <name> [<options>] -- <command> [<arguments> ...]",
    discussion: """
      The command is looked up in your PATH, and gets your environment and directory. The daemon manages \
      it until `dormouse stop`, also after your shell ends. The verb ends when the worker is ready.

      If your daemon doesn't run, the verb starts it in the background, as `dormouse daemon --detach` \
      does; not with --socket or --project, nor for a project whose daemon has ended.

      Examples:
        dormouse run web -- python3 -m http.server 8080
        dormouse run bot --env PORT=8081 --directory /srv/bot -- node bot.js
      """)

  @Option(
    help: ArgumentHelp(
      "0 to 100. Among workers in the same state, a higher one is terminated later.",
      valueName: "number"))
  var importance: Int?
  @Option(help: "Run it in this directory instead of the current one.", completion: .directory)
  var directory: String?
  @Option(
    name: .customLong("env"),
    help: ArgumentHelp("Add a variable to its environment; repeatable.", valueName: "name=value"))
  var variables: [String] = []
  @Flag(help: "Give it NOTIFY_SOCKET (sd_notify), over which it can report STATUS=.")
  var notify = false
  @Flag(help: "Print JSON (docs/json.md).") var json = false
  @OptionGroup var connection: ConnectionOptions
  @Argument(help: "A name for the worker.")
  var name: String
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
    var daemon = try connection.connectOrStart()
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
