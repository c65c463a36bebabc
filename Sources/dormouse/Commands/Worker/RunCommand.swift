import ArgumentParser
import Control
import Linux
import Policy
import PolicyFile

struct RunCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "run",
    abstract: "Start a command as a new worker.",
    usage: """
      dormouse run [<name>] [<options>] -- <command> [<arguments> ...]
      dormouse run [<options>] <command> <arguments> ...
      """,
    discussion: """
      The command is looked up in your PATH, and gets your environment and directory. The daemon \
      manages it until `dormouse stop`, also after your shell ends. The verb ends when the worker \
      is ready. Without a name the worker is called after its program or script: `x` for `python3 \
      x.py`, `x-2` if there is an `x` that runs, and after the package for `npm start`.

      If your daemon doesn't run, the verb starts it in the background, as `dormouse daemon \
      --detach` does; not with --socket or --project, nor for a project whose daemon has ended.

      A worker of `run` is forgotten with its daemon when it doesn't run. With --save the worker \
      is also added to the configuration that the daemon reads, which keeps all its other lines. \
      There its environment is the daemon's, with the variables of --env.

      Examples:
        dormouse run web -- python3 -m http.server 8080
        dormouse run python3 poll.py
        dormouse run web --readiness tcp=8080 --restart on-failure --save -- ./server
        dormouse run jobs --set limits.memory=1GB --set groups=bots -- ./jobs
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
  @Option(
    help: ArgumentHelp(
      "Start it again when it has ended: no, on-failure, always, unless-stopped or after-shortage.",
      valueName: "when"),
    completion: .list(["no", "on-failure", "always", "unless-stopped", "after-shortage"]))
  var restart: String?
  @Option(
    help: ArgumentHelp(
      "When it is ready: a port of TCP, tcp=PORT, log_line=TEXT or notify. Default: at once.",
      valueName: "sign"))
  var readiness: String?
  @Option(
    name: .customLong("set"),
    help: ArgumentHelp(
      "Set a key of a worker or a policy, such as limits.memory=1GB or hibernate.after=5m; "
        + "repeatable.", valueName: "key=value"), completion: .workerKeys)
  var settings: [String] = []
  @Flag(help: "Give it NOTIFY_SOCKET (sd_notify), over which it can report STATUS=.")
  var notify = false
  @Option(
    help: ArgumentHelp(
      "The policy of the daemon that this verb starts. It is an error if a daemon runs with "
        + "another.", valueName: "policy"), completion: .policies)
  var policy: String?
  @Flag(help: "Add it to a configuration, so that the daemon starts it from now on.")
  var save = false
  @Flag(help: "Print JSON (docs/json.md).") var json = false
  @OptionGroup var connection: ConnectionOptions
  @Argument(help: "A name for the worker.")
  var name: String?
  @Argument(parsing: .postTerminator, help: "The command and its arguments, after `--`.")
  var command: [String] = []

  func validate() throws {
    if name == "" { throw ValidationError("A worker needs a name.") }
    if command.isEmpty {
      throw ValidationError(
        "The command is missing: `dormouse run \(name.map(escaped) ?? "NAME") -- COMMAND`; if it "
          + "is the command, `dormouse run -- \(name.map(escaped) ?? "COMMAND")`.")
    }
    try checkNumber("--importance", importance, in: 0...100)
    for variable in variables where !variable.dropFirst().contains("=") {
      throw ValidationError("--env takes NAME=VALUE, not '\(escaped(variable))'.")
    }
  }

  func run() throws {
    let launch = try specification()
    var daemon = try connection.connectOrStart(policy: policy)
    let name: String
    if let given = self.name {
      name = given
    } else {
      name = try daemon.freeName(chosenName(in: launch.directory))
    }
    let saved = try save ? RunToSave(addition(launch, name), of: &daemon) : nil
    let response = try daemon.request(.run, worker: name) { $0.launch = launch }
    try daemon.report(response, of: "run", worker: name, json: json)
    try saved?.write()
  }

  private struct Package: Codable { var name: String? }

  private func chosenName(in directory: String) -> String {
    guard NameRule.runsPackageScript(command) else { return NameRule.name(of: command) }
    // If package.json can't be read, npm reports that.
    let bytes = try? readFile("\(directory)/package.json")
    let package = bytes.flatMap { try? WireCodec.decode(Package.self, from: $0) }
    return NameRule.name(of: [package?.name ?? directory])
  }

  /// The options as keys of a worker.
  private var chosen: [String] {
    (restart.map { ["restart.when=\($0)"] } ?? []) + (readiness.map { [Self.readiness($0)] } ?? [])
      + settings
  }

  private static func readiness(_ sign: String) -> String {
    if sign == "notify" { return "readiness.notify=true" }
    if !sign.isEmpty, sign.allSatisfy(\.isNumber) { return "readiness.tcp=\(sign)" }
    let lead = "log_line="
    guard sign.hasPrefix(lead) else { return "readiness.\(sign)" }
    return "readiness.\(lead)\(WorkerSettings.value(String(sign.dropFirst(lead.count))))"
  }

  private func addition(
    _ launch: LaunchSpecification, _ name: String
  ) throws -> WorkerAddition {
    var addition = WorkerAddition(
      name: name, command: launch.command,
      settings: try WorkerSettings(chosen, environment: launch.environment))
    addition.directory = launch.directory
    for variable in variables { addition.environment.merge(pair(variable)) { $1 } }
    (addition.importance, addition.notify) = (importance, notify)
    return addition
  }

  private func pair(_ variable: String) -> [String: String] {
    guard let equals = variable.dropFirst().firstIndex(of: "=") else { return [:] }
    return [String(variable[..<equals]): String(variable[variable.index(after: equals)...])]
  }

  private func specification() throws -> LaunchSpecification {
    let here = try currentDirectory()
    let inherited = ProcessEnvironment.current()
    for name in inherited.unusable {
      Output.complain("the variable \(escaped(name)) isn't UTF-8, and is left out")
    }
    var environment = inherited.variables
    for variable in variables { environment.merge(pair(variable)) { $1 } }
    do throws(SettingError) { _ = try WorkerSettings(chosen, environment: environment) } catch {
      throw CommandFailure(.usage, escaped("--set \(error)"))
    }
    return LaunchSpecification(
      command: [try locate(command.first, in: here, path: inherited.variables["PATH"])]
        + command.dropFirst(),
      directory: directory.map { absolutePath($0, in: here) } ?? here,
      environment: environment, importance: importance, notify: notify ? true : nil,
      settings: chosen.isEmpty ? nil : chosen)
  }
}

/// Finds a command that another process will execute.
func locate(_ command: String?, in directory: String, path: String?) throws -> String {
  do {
    return try locateCommand(command ?? "", searchPath: path, directory: directory)
  } catch {
    throw CommandFailure(.notDone, error.description)
  }
}

extension RunCommand {
  private static let valued: Set<String> = [
    "--importance", "--directory", "--env", "--restart", "--readiness", "--set", "--policy",
    "--socket", "--project",
  ]

  /// Returns the arguments of `dormouse` with the `--` that may be left out before a command of
  /// several words, or with a `/` in it. One word alone is a name without a command.
  static func completed(_ arguments: [String]) -> [String] {
    guard arguments.first == configuration.commandName, !arguments.contains("--") else {
      return arguments
    }
    var index = 1
    while index < arguments.count, arguments[index].hasPrefix("-") {
      index += valued.contains(arguments[index]) ? 2 : 1
    }
    guard index < arguments.count else { return arguments }
    let command = arguments[index...]
    if command.count == 1, !arguments[index].contains("/") { return arguments }
    return arguments[..<index] + ["--"] + command
  }
}

extension DaemonConnection {
  /// Returns the name, or `NAME-2` and so on if a worker with that name runs.
  mutating func freeName(_ name: String) throws -> String {
    let taken = Set(
      (try ask(.ps).workers ?? []).filter { $0.state != "terminated" }.map(\.name))
    return (1...).lazy.map { $0 == 1 ? name : "\(name)-\($0)" }.first { !taken.contains($0) }
      ?? name
  }
}
