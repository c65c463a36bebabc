import ArgumentParser
import Control
import FootprintTrace
import Glibc
import Linux
import Policy
import Wrap

struct FootprintRecordCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "record",
    abstract: "Record the footprint of a worker, a process or a command over time.",
    usage: """
      dormouse footprint record <name> [<options>]
      dormouse footprint record --pid <pid> [<options>]
      dormouse footprint record [<options>] -- <command> [<arguments> ...]
      """,
    discussion: """
      A worker's recording also has its changes of state, warnings and hibernations, which the \
      daemon reports. A process and a command need no daemon; their descendants count. Each sample \
      is a line of the file. The recording ends with Ctrl-C, after --for, or when the process \
      ends. `dormouse footprint show` draws it.

      A command keeps the terminal and its signals, and its exit code is the verb's. After --for \
      it is ended (SIGTERM, SIGKILL after 5 s), and the exit code is 0. SIGUSR1 to the recorder \
      adds a mark.

      Examples:
        dormouse footprint record web --for 10m
        dormouse footprint record -o server.footprint -- ./server --port 8080
      """)
  @Option(
    help: ArgumentHelp("Record this process and its descendants.", valueName: "pid"))
  var pid: Int32?
  @Option(help: ArgumentHelp("Take a sample this often, at least 1ms.", valueName: "duration"))
  var every = "100ms"
  @Option(
    name: .customLong("for"),
    help: ArgumentHelp(
      "Record for this long. Default: until Ctrl-C or the end of the process.",
      valueName: "duration"))
  var limit: String?
  @Option(
    help: ArgumentHelp(
      "Ask it to free memory, this long after the start; repeatable. A worker is asked by its "
        + "daemon, as by `dormouse warn`, others by --warn-signal.",
      valueName: "duration"))
  var warnAt: [String] = []
  @Option(
    help: ArgumentHelp(
      "The signal of --warn-at. Only a process with a handler for it gets it.",
      valueName: "signal"))
  var warnSignal = "USR1"
  @Option(
    name: [.short, .long],
    help: ArgumentHelp(
      "Write to this file, and replace its content; `-` is standard output. Default: a new file, "
        + "NAME.footprint.",
      valueName: "file"), completion: .file())
  var output: String?
  @Flag(name: .shortAndLong, help: "Print nothing.") var quiet = false
  @Flag(help: "Print JSON at the end, as `footprint show` (docs/json.md).") var json = false
  @OptionGroup var connection: ConnectionOptions
  @Argument(help: "The worker to record.", completion: .workers) var name: String?
  @Argument(parsing: .postTerminator, help: "The command to record, after `--`.")
  var command: [String] = []

  func validate() throws {
    let subjects = [name != nil, pid != nil, !command.isEmpty].count { $0 }
    if subjects != 1 {
      throw ValidationError("Name a worker, or give --pid PID, or -- COMMAND: one of the three.")
    }
    if let pid, pid < 1 { throw ValidationError("--pid is a number from 1 on.") }
    if output == "-", !command.isEmpty {
      throw ValidationError("Standard output is the command's; give a file with --output.")
    }
    if json, quiet || output == "-" || !command.isEmpty {
      throw ValidationError(
        "--json can't be used with --quiet, with `--output -`, or with a command, which has "
          + "standard output.")
    }
  }

  func run() throws {
    let settings = try settings()
    let recorder: Recorder
    do { recorder = try Recorder(settings) } catch { throw error.failure }
    let view = RecordingView(isCommand: !command.isEmpty, isQuiet: quiet || json || output == "-")
    recorder.onMark = view.show
    let end: ForegroundChild.End?
    do { end = try recorder.run(onSample: view.show) } catch {
      view.close()
      throw error.failure
    }
    view.close()
    if json {
      try Output.json(
        RecordingSummary(try RecordingFiles.read(recorder.path), name: recorder.path))
    }
    try view.sum(up: recorder.path)
    if recorder.recent.end?.reason == .gone {
      throw CommandFailure(
        .daemonEnded, "the daemon has ended; \(escaped(recorder.path)) is complete")
    }
    // The exit code is the program's. A program that was ended at the end of --for counts as a
    // success.
    guard recorder.recent.end?.reason == .exited, let end else { return }
    switch end {
    case .exited(let code): WrapEnd.exited(code).perform()
    case .signaled(let signal): WrapEnd.signaled(signal).perform()
    }
  }

  private func settings() throws -> RecorderSettings {
    let interval = try duration(every, of: "--every")
    guard interval >= .milliseconds(1) else {
      throw CommandFailure(.usage, "--every is at least 1ms")
    }
    guard let signal = Signals.number(warnSignal) else {
      throw CommandFailure(.usage, "--warn-signal: there is no signal \(escaped(warnSignal))")
    }
    var settings = RecorderSettings(
      subject: try subject(), every: interval,
      limit: try limit.map { try duration($0, of: "--for") },
      version: Dormouse.version)
    settings.warnings = try warnAt.map { try duration($0, of: "--warn-at") }
    settings.warning = signal
    settings.file = output
    return settings
  }

  private func subject() throws -> RecorderSettings.Subject {
    if let name { return .worker(name, socket: connection.path, isNamed: connection.socket != nil) }
    if let pid { return .process(pid) }
    return .command(
      path: try locateHere(command.first ?? ""), command,
      firstArgument: Int(CommandLine.argc) - command.count)
  }
}

extension RecordingFailure {
  fileprivate var failure: CommandFailure {
    let exit: CommandExit =
      switch self {
      case .control(let error): error.exit
      case .unknownWorker: .unknownWorker
      case .start(let error): error.code == ENOENT ? .noCommand : .cannotRun
      case .write: .cannotCreate
      case .noProcess, .measure, .system: .notDone
      }
    return CommandFailure(exit, description)
  }
}
