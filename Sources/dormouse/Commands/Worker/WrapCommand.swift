import ArgumentParser
import Control
import Daemon
import Glibc
import Linux
import Policy
import PolicyFile
import Wrap

struct WrapCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "wrap",
    abstract:
      "Run a language server, an MCP server or a program in a terminal that sleeps when idle.",
    usage: "dormouse wrap [<options>] -- <command> [<arguments> ...]",
    discussion: """
      Write `dormouse wrap --` before the helper's command, in the configuration of the editor or \
      agent host. The helper gets the host's standard input, output and error, environment, \
      directory and open descriptors. It is suspended after --idle-after, and hibernated after \
      --hibernate-after. The next byte wakes it. Signals pass through, and the exit code is the \
      helper's (126: it can't be started; 127: there is no such command). If the wrapper is \
      killed, its helper is ended.

      No daemon is needed. If one runs, `dormouse ps` and the other verbs know the helper as \
      NAME-PID, with the name of its program or script. If standard input is your terminal, the \
      program keeps it: the first key, Ctrl-C, Ctrl-Z and a new size wake it.

      Examples:
        dormouse wrap -- clangd --log=error
        dormouse wrap -- claude
        dormouse wrap --idle-after 5m --log /tmp/wrap.log -- npx some-mcp-server
      """)

  @Option(
    help: ArgumentHelp(
      "Suspend it after this long without traffic, output or work. Default: 1m.",
      valueName: "duration"))
  var idleAfter: String?
  @Option(
    help: ArgumentHelp(
      "Hibernate it when it was suspended for this long; `never`: only when memory is short, or on "
        + "request. Default: 40s.",
      valueName: "duration"))
  var hibernateAfter: String?
  @Option(
    help: ArgumentHelp(
      "Wake it when a timer or time-out of its own is due that is at least this long. Default: "
        + "45s.", valueName: "duration"))
  var wakeForTimers: String?
  @Option(
    help: ArgumentHelp(
      "Use this policy instead of the built-in one: a name or a file.", valueName: "policy"),
    completion: .policies)
  var policy: String?
  @Option(
    help: ArgumentHelp(
      "Log each step to this file. Default: only failures, on standard error.",
      valueName: "file"), completion: .file())
  var log: String?
  @Option(
    help: ArgumentHelp(
      "Register with the daemon at this control socket.", valueName: "path"),
    completion: .file())
  var socket: String?
  @Option(
    help: ArgumentHelp("Keep images and records here.", valueName: "directory"),
    completion: .directory)
  var stateDirectory: String?
  @Option(
    help: ArgumentHelp(
      "Call it NAME-PID in `ps` and for the verbs, whatever its program is.", valueName: "name"))
  var name: String?
  @Flag(
    help: ArgumentHelp(
      "Let a daemon terminate it for lack of memory. Without this it is at most hibernated."))
  var mayTerminate = false
  @Option(
    help: ArgumentHelp(
      "Ask it by this signal to free memory, if it has a handler for it: when memory is short, "
        + "before it is suspended, and for `dormouse warn`.", valueName: "signal"))
  var shedSignal: String?
  @Option(
    help: ArgumentHelp(
      "Ask it by this command of sh instead of a signal. The helper's pid is in "
        + "DORMOUSE_WORKER_PID.",
      valueName: "command"))
  var shedCommand: String?
  @Option(
    help: ArgumentHelp(
      "Stop it if it still runs this long after its host has closed its standard input and output; "
        + "`never`: it may stay. Default: 10s.", valueName: "duration"))
  var hostGrace: String?
  @Flag(
    help: ArgumentHelp(
      "Counts --host-grace also if the process that started it has ended, and only one of its "
        + "standard input and output is a pipe or a socket. `dormouse integrate` writes this "
        + "option."))
  var endWithHost = false
  @Argument(
    parsing: .captureForPassthrough,
    help: "The command and its arguments, after `--`.")
  var command: [String] = []

  func run() throws {
    try checkOption()
    let wrapped = command.first == "--" ? Array(command.dropFirst()) : command
    guard let program = wrapped.first, !program.isEmpty else {
      throw CommandFailure(
        .usage, "name the command to wrap: `dormouse wrap -- COMMAND [ARGUMENTS]`")
    }
    let first = Int(CommandLine.argc) - wrapped.count
    let inheritance = Inheritance.ofThisProcess(firstArgument: first)
    let path = try locateHere(program)
    let paths = DefaultPaths.ofThisProcess()
    let daemonSocket = paths.socket(option: socket)
    // The daemon, which has another working directory, gets the path of the wrapper's socket.
    var settings = WrapSettings(
      command: wrapped, path: path, inheritance: inheritance, policy: try effectivePolicy(paths),
      stateDirectory: absolute(stateDirectory) ?? paths.stateDirectory,
      daemonSocket: absolute(daemonSocket) ?? daemonSocket, version: Dormouse.version)
    settings.log = log
    settings.mayBeTerminated = mayTerminate
    settings.label = try checkedName()
    settings.shed = try checkedShed()
    // Without the directory `ps` shows no project.
    settings.directory = try? currentDirectory()
    settings.hostGrace = try checkedHostGrace()
    settings.endsWithHost = endWithHost
    let end = WrapComposition.run(settings)
    switch end {
    case .notStarted(let reason): Output.complain(escaped(reason))
    case .unmanaged(let reason): execute(path, inheritance, because: reason)
    case .exited, .signaled: break
    }
    end.perform()
  }

  /// Checks options that are written into a host's configuration, where an error would be noticed
  /// late.
  static func check(options: [String]) throws {
    let end = ["--", "true"]
    let parsed = try parse(options + end)
    try parsed.checkOption()
    guard parsed.command == end else {
      let word = parsed.command.first ?? "--"
      throw CommandFailure(
        .usage, "only options of `wrap` can be written after `--`, and `\(escaped(word))` is none")
    }
    _ = try parsed.checkedName()
    _ = try parsed.checkedShed()
    _ = try parsed.checkedHostGrace()
    _ = try parsed.effectivePolicy(DefaultPaths.ofThisProcess())
  }

  /// Refuses an unknown option before the command, which ArgumentParser would read as the command.
  private func checkOption() throws {
    guard let first = command.first, first.hasPrefix("-"), first != "--" else { return }
    if ["-h", "--help", "-help"].contains(first) { throw CleanExit.helpRequest(WrapCommand.self) }
    throw CommandFailure(
      .usage,
      "`wrap` has no option `\(escaped(first))`; `dormouse wrap --help` lists them, and the "
        + "command comes after `--`")
  }

  private func checkedShed() throws -> WorkerConfiguration.Shed? {
    switch (shedSignal, shedCommand) {
    case (nil, nil): return nil
    case (nil, let command?):
      if !command.allSatisfy(\.isWhitespace) { return .command(["/bin/sh", "-c", command]) }
      throw CommandFailure(.usage, "--shed-command is empty")
    case (let name?, nil):
      if let number = Signals.number(name), ![SIGKILL, SIGSTOP].contains(number) {
        return .signal(number)
      }
      throw CommandFailure(
        .usage,
        "--shed-signal `\(escaped(name))` is no signal that a program can handle; `USR2` is one")
    case (.some, .some):
      throw CommandFailure(.usage, "give --shed-signal or --shed-command, not both")
    }
  }

  private func checkedName() throws -> String? {
    guard let name else { return nil }
    if WrapSettings.isLabel(name) { return name }
    throw CommandFailure(
      .usage,
      "--name `\(escaped(name))` has to have 1 to 40 letters, digits, `-`, `_` and `.`, and not "
        + "to begin with `.` or `-`")
  }

  private func checkedHostGrace() throws -> Duration? {
    guard let hostGrace else { return WrapSettings.defaultHostGrace }
    return try durationOrNever(hostGrace, of: "--host-grace")
  }

  private func effectivePolicy(_ paths: DefaultPaths) throws -> LifecyclePolicy {
    var result = LifecyclePolicy.wrapping()
    if let policy {
      let loaded = PolicyLibrary(directories: paths.policyDirectories).load(policy)
      PolicyCheck.complain(loaded.diagnostics)
      guard let value = loaded.value else { throw ExitCode(CommandExit.badConfiguration.rawValue) }
      result = value
      // No verb or other worker would bring it to the foreground.
      result.foreground.mode = .activity
    }
    if let idleAfter {
      result.foreground.idleAfter = try duration(idleAfter, of: "--idle-after")
      // A longer grace would decide instead of --idle-after.
      result.background.suspendAfter = result.background.suspendAfter.map {
        min($0, result.foreground.idleAfter / 10)
      }
    }
    if let hibernateAfter {
      result.hibernate.after = try durationOrNever(hibernateAfter, of: "--hibernate-after")
    }
    if let wakeForTimers {
      let shortest = try durationOrNever(wakeForTimers, of: "--wake-for-timers")
      if let shortest, shortest <= .zero {
        throw CommandFailure(
          .usage, "--wake-for-timers must be longer than 0; `never` switches it off")
      }
      result.background.wakeForTimers = shortest
    }
    return result
  }

  private func durationOrNever(_ text: String, of option: String) throws -> Duration? {
    text == "never" ? nil : try duration(text, of: option)
  }

  /// Executes the command as without `dormouse wrap --`.
  private func execute(_ path: String, _ inheritance: Inheritance, because reason: String) -> Never
  {
    Output.complain("\(escaped(path)) runs without sleep: \(escaped(reason))")
    let failure = inheritance.execute(path)
    Output.complain("can't start \(escaped(path)): \(errorText(failure))")
    WrapEnd.notStarted("").perform()
  }
}

/// Finds a command that this process is going to execute, in its own PATH and directory.
func locateHere(_ command: String) throws -> String {
  do throws(CommandLookupError) {
    return try locateCommand(
      command, searchPath: getenv("PATH").map { String(cString: $0) }, directory: ".")
  } catch {
    throw CommandFailure(error.exit, error.description)
  }
}

extension CommandLookupError {
  /// The exit code, as that of env(1).
  var exit: CommandExit {
    switch self {
    case .notFound, .notFoundInPath: .noCommand
    case .isDirectory, .notExecutable: .cannotRun
    }
  }
}
