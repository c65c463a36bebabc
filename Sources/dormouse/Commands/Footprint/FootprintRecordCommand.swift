import ArgumentParser
import Control
import Daemon
import FootprintRecording
import FootprintTrace
import Glibc
import Linux
import PolicyFile
import Supervision
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
      A worker is followed by its name, with what its daemon says of it: changes of state, warnings, \
      hibernations. A process and a command need no daemon; their descendants count. The recording \
      goes into a file, a line for each sample, until Ctrl-C, the end of --for, or the end of what is \
      recorded. `dormouse footprint show` draws it.

      A command keeps the terminal, its signals and its exit code; --for ends it (SIGTERM, and \
      SIGKILL after 5 s) with code 0. SIGUSR1 to the recorder puts a mark in.
      """)
  @OptionGroup var connection: ConnectionOptions
  @Option(
    help: ArgumentHelp("A running process and its descendants.", valueName: "pid"))
  var pid: Int32?
  @Option(help: ArgumentHelp("The time between samples, from 1ms.", valueName: "duration"))
  var every = "100ms"
  @Option(
    name: .customLong("for"),
    help: ArgumentHelp("For so long; else until something ends it.", valueName: "duration"))
  var limit: String?
  @Option(
    help: ArgumentHelp(
      "Ask it to give memory back, so long after the beginning; repeatable.",
      discussion: "A worker through its daemon, as `dormouse warn`; others by --warn-signal.",
      valueName: "duration"))
  var warnAt: [String] = []
  @Option(
    help: ArgumentHelp(
      "By this signal, and only those who have a handler for it.", valueName: "signal"))
  var warnSignal = "USR1"
  @Option(
    name: [.short, .long],
    help: ArgumentHelp(
      "The file, whose content is replaced; `-` for standard output.",
      discussion: "Default: a new one, NAME.footprint.", valueName: "file"), completion: .file())
  var output: String?
  @Flag(name: .shortAndLong, help: "Show and print nothing of it.") var quiet = false
  @Flag(help: "At the end, print its numbers as JSON, as `footprint show`.") var json = false
  @Argument(help: "A worker.", completion: .workers) var name: String?
  @Argument(parsing: .postTerminator, help: "A command and its arguments, after `--`.")
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
        "--json goes with neither --quiet, nor `--output -`, nor a command, whose standard output it is."
      )
    }
  }

  func run() throws {
    let settings = try settings()
    let recorder: Recorder
    do { recorder = try Recorder(settings) } catch { throw error.failure }
    let view = RecordingView(isCommand: !command.isEmpty, isQuiet: quiet || json || output == "-")
    recorder.onMark = view.show
    let end: ForegroundChild.End?
    do { end = try recorder.run(look: view.show) } catch {
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
        exit: .daemonWentAway, text: "the daemon has ended; \(escaped(recorder.path)) is complete")
    }
    // The exit code is the program's. A program that was ended at the end of --for counts as a success.
    guard recorder.recent.end?.reason == .exited, let end else { return }
    switch end {
    case .exited(let code): WrapEnd.exited(code).perform()
    case .signaled(let signal): WrapEnd.signaled(signal).perform()
    }
  }

  private func settings() throws -> RecorderSettings {
    let interval = try duration(every, "--every")
    guard interval >= .milliseconds(1) else {
      throw CommandFailure(exit: .usage, text: "--every is at least 1ms")
    }
    guard let signal = SignalName.number(warnSignal) else {
      throw CommandFailure(
        exit: .usage, text: "--warn-signal: there is no signal \(escaped(warnSignal))")
    }
    var settings = RecorderSettings(
      subject: try subject(), every: interval, limit: try limit.map { try duration($0, "--for") },
      version: Dormouse.version)
    settings.warnings = try warnAt.map { try duration($0, "--warn-at") }
    settings.warning = signal
    settings.file = output
    return settings
  }

  private func subject() throws -> RecorderSettings.Subject {
    if let name { return .worker(name, socket: connection.path, isNamed: connection.socket != nil) }
    if let pid { return .process(pid) }
    let first = Int(CommandLine.argc) - command.count
    do throws(CommandLookupError) {
      let path = try locateCommand(
        command.first ?? "", searchPath: getenv("PATH").map { String(cString: $0) },
        directory: ".")
      return .command(path: path, command, firstArgument: first)
    } catch {
      throw CommandFailure(exit: error.exit, text: error.description)
    }
  }

  private func duration(_ text: String, _ option: String) throws -> Duration {
    switch OptionUnits.duration(text) {
    case .success(let value): return value
    case .failure(let problem):
      throw CommandFailure(exit: .usage, text: escaped("\(option) \(problem)"))
    }
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
    return CommandFailure(exit: exit, text: description)
  }
}
