import ArgumentParser
import Control
import Integrate

struct IntegrateCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "integrate",
    abstract: "Put `dormouse wrap` before the servers in the settings of editors and agents.",
    usage: "dormouse integrate [<options>] [<host>] [-- <wrap options>]",
    discussion: """
      Finds the MCP servers, language servers and Jupyter kernels in the configuration of a host, \
      and writes `dormouse wrap --` before their commands. All else in the files stays as it is, \
      byte for byte. Options after `--` are written behind `wrap`. --undo removes these words \
      again, also from a file that has changed since. Without a host, or with --list, it shows \
      what it finds and changes nothing. A command that can't sleep in a useful way stays as it \
      is, and the reason is shown.

      Hosts: claude-code, claude-desktop, codex, cursor, vscode, windsurf, cline, continue, \
      gemini-cli, opencode, goose, lm-studio, zed, helix, jupyter, and all of these: all. For \
      neovim and emacs it prints what to write. Files of a project are looked for in the working \
      directory.

      Examples:
        dormouse integrate
        dormouse integrate claude-code --dry-run
        dormouse integrate claude-code -- --idle-after 10m
        dormouse integrate claude-code --undo
      """)

  @Flag(help: "Show the servers and their states, and change nothing.") var list = false
  @Flag(help: "Remove `dormouse wrap` from the commands again.") var undo = false
  @Flag(help: "Show the lines that would change, and change nothing.") var dryRun = false
  @Option(
    name: .customLong("server"),
    help: ArgumentHelp("Change only this server; repeatable.", valueName: "name"))
  var servers: [String] = []
  @Flag(help: "Print JSON (docs/json.md).") var json = false
  @Argument(help: "The editor or agent; `all` for each that is found.") var host: HostChoice?
  @Argument(parsing: .postTerminator, help: "Options of `dormouse wrap`, after `--`.")
  var wrapOptions: [String] = []

  func validate() throws {
    if list, undo || dryRun { throw ValidationError("--list changes nothing: use it alone.") }
    if host == nil, undo || dryRun || !servers.isEmpty || !wrapOptions.isEmpty {
      throw ValidationError("Name a host: \(HostChoice.allValueStrings.joined(separator: ", ")).")
    }
    if list || undo, !wrapOptions.isEmpty {
      throw ValidationError(
        "Options of `wrap` have no effect with --list and --undo: leave them out.")
    }
  }

  func run() throws {
    try WrapCommand.check(options: wrapOptions)
    let environment = ProcessEnvironment.current().variables
    let paths = DefaultPaths.ofThisProcess()
    var integration = Integration(
      context: HostContext(
        environment: environment, home: paths.home, directory: try currentDirectory()),
      wrapPrefix: WrapPrefix(
        program: try DormouseExecutable.path(environment), options: wrapOptions, addsOptions: true),
      backupDirectory: "\(paths.stateDirectory)/integrate")
    integration.hasGivenOptions = !wrapOptions.isEmpty
    integration.servers = servers
    let hosts = host?.hosts ?? HostChoice.all.hosts
    let change: Integration.Change? = list || host == nil ? nil : undo ? .unwrap : .wrap
    var files = integration.inspect(hosts, for: change)
    if !dryRun { for index in files.indices { integration.apply(&files[index]) } }
    // Most hosts have files without servers.
    files.removeAll { $0.servers.isEmpty && $0.problem == nil }
    let result = IntegrationResult(
      files: files, hosts: hosts, change: change, isDryRun: dryRun, integration: integration)
    if json {
      try Output.json(result.report)
    } else {
      try Output.write(result.text.map { $0 + "\n" }.joined())
    }
    try end(result)
  }

  /// Reports each file that wasn't changed. The first one decides the exit code.
  private func end(_ result: IntegrationResult) throws {
    // With --list, problems are in the table.
    let failed = result.change == nil ? [] : result.files.filter { $0.problem != nil }
    for file in failed {
      if let problem = file.problem { Output.complain(problem.sentence(file.path)) }
    }
    if let problem = failed.first?.problem { throw ExitCode(problem.exit.rawValue) }
    guard let failure = result.failure else { return }
    throw CommandFailure(.notDone, failure)
  }
}

/// The argument for a host, or all hosts.
enum HostChoice: ExpressibleByArgument {
  case all
  case one(IntegratedHost)

  init?(argument: String) {
    if argument == "all" {
      self = .all
    } else if let host = IntegratedHost(rawValue: argument) {
      self = .one(host)
    } else {
      return nil
    }
  }

  static var allValueStrings: [String] { IntegratedHost.allCases.map(\.rawValue) + ["all"] }

  /// The hosts. All hosts are those with files: a host that is configured by a program has none.
  var hosts: [IntegratedHost] {
    switch self {
    case .all: IntegratedHost.allCases.filter { ![.neovim, .emacs].contains($0) }
    case .one(let host): [host]
    }
  }
}
