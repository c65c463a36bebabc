import ArgumentParser
import Control

/// A verb that is applied to chosen workers, with one sentence about each.
protocol WorkerCommand: ParsableCommand {
  static var verb: ControlRequest.Verb { get }
  var selection: WorkerSelection { get }
}

extension WorkerCommand {
  func validate() throws { try selection.check() }

  func run() throws { try apply(Self.verb) }

  /// Applies `verb` to the chosen workers. A restart stops them first.
  ///
  /// - Parameter seconds: the time for which the verb applies; nil for no end.
  func apply(_ verb: ControlRequest.Verb, seconds: Double? = nil) throws {
    var daemon = try selection.connection.connect()
    let quietly = selection.json
    try daemon.apply(Self.configuration.commandName ?? "", to: selection, verb) { daemon, names in
      try verb == .restart
        ? daemon.restart(names, quietly: quietly)
        : daemon.attempt(verb, to: names, quietly: quietly, seconds: seconds)
    }
  }
}

struct StartCommand: WorkerCommand {
  static let configuration = CommandConfiguration(
    commandName: "start", abstract: "Launch workers; ends when they are ready.")
  static let verb = ControlRequest.Verb.start
  @OptionGroup var selection: WorkerSelection
}

struct StopCommand: WorkerCommand {
  static let configuration = CommandConfiguration(
    commandName: "stop",
    abstract: "End workers gracefully; a sleeping worker is woken first, to save its work.",
    discussion: """
      The daemon stays; `dormouse shutdown` ends it, too. `dormouse stop --keep-workers` is \
      another name for `dormouse shutdown --keep-workers`: the daemon ends, and its workers stay \
      for the next one.
      """)
  static let verb = ControlRequest.Verb.stop
  @Flag(help: "End only the daemon, and leave all workers to the next one.")
  var keepWorkers = false
  @OptionGroup var selection: WorkerSelection

  func validate() throws {
    guard keepWorkers else { return try selection.check() }
    if selection.all || !selection.names.isEmpty {
      throw ValidationError(
        "--keep-workers ends the daemon and keeps all workers: use it without names. To stop "
          + "some, leave it out; to release an adopted worker, use `dormouse release`.")
    }
    if selection.dryRun {
      throw ValidationError(
        "--keep-workers stops no worker: --dry-run has nothing to show.")
    }
  }

  func run() throws {
    guard keepWorkers else { return try apply(.stop) }
    var daemon = try selection.connection.connect()
    try daemon.report(daemon.request(.leave), of: "stop", json: selection.json)
  }
}

struct RestartCommand: WorkerCommand {
  static let configuration = CommandConfiguration(
    commandName: "restart", abstract: "Stop workers and launch them again.",
    discussion: """
      With --all, all running workers are restarted. A worker that was in the foreground returns \
      to it. Other workers displace none from it.
      """)
  static let verb = ControlRequest.Verb.restart
  @OptionGroup var selection: WorkerSelection
}

struct ForegroundCommand: WorkerCommand {
  static let configuration = CommandConfiguration(
    commandName: "foreground",
    abstract: "Bring workers to the foreground; a sleeping worker is woken.")
  static let verb = ControlRequest.Verb.foreground
  @OptionGroup var selection: WorkerSelection
}

struct BackgroundCommand: WorkerCommand {
  static let configuration = CommandConfiguration(
    commandName: "background", abstract: "Send workers to the background.")
  static let verb = ControlRequest.Verb.background
  @OptionGroup var selection: WorkerSelection
}

struct SuspendCommand: WorkerCommand {
  static let configuration = CommandConfiguration(
    commandName: "suspend",
    abstract: "Suspend workers: they get no processor time until they are woken.")
  static let verb = ControlRequest.Verb.suspend
  @OptionGroup var selection: WorkerSelection
}

struct HibernateCommand: WorkerCommand {
  static let configuration = CommandConfiguration(
    commandName: "hibernate", abstract: "Move the memory of workers to disk; the processes stay.",
    discussion: """
      A running worker is suspended first. The verb ends when the memory is on disk, and prints \
      how much was freed. The next connection, byte or signal wakes the worker.

      Examples:
        dormouse hibernate web
        dormouse hibernate --all --dry-run
      """)
  static let verb = ControlRequest.Verb.hibernate
  @OptionGroup var selection: WorkerSelection
}

struct WakeCommand: WorkerCommand {
  static let configuration = CommandConfiguration(
    commandName: "wake", abstract: "Resume suspended or hibernated workers into the background.",
    discussion: """
      The verb ends when the workers run. `dormouse foreground` wakes a worker, too, and brings it \
      to the foreground.

      Examples:
        dormouse wake web
        dormouse wake 'bot*'
      """)
  static let verb = ControlRequest.Verb.wake
  @OptionGroup var selection: WorkerSelection
}

struct TerminateCommand: WorkerCommand {
  static let configuration = CommandConfiguration(
    commandName: "terminate",
    abstract: "End workers as a lack of memory would: a hibernated worker isn't woken first.")
  static let verb = ControlRequest.Verb.terminate
  @OptionGroup var selection: WorkerSelection
}

struct WarnCommand: WorkerCommand {
  static let configuration = CommandConfiguration(
    commandName: "warn", abstract: "Ask workers to free memory, and show what they freed.")
  static let verb = ControlRequest.Verb.warn
  @OptionGroup var selection: WorkerSelection
}

struct TrimCommand: WorkerCommand {
  static let configuration = CommandConfiguration(
    commandName: "trim",
    abstract: "Move the memory that running workers don't use out of RAM, while they run.",
    discussion: """
      The memory is moved to the kernel's swap, which may be zram, or to an image on the disk. \
      A worker gets what it uses again. The verb ends when the memory has left RAM, and prints \
      how much. The policy's `trim:` does the same regularly.

      Examples:
        dormouse trim web
        dormouse trim --all --dry-run
      """)
  static let verb = ControlRequest.Verb.trim
  @OptionGroup var selection: WorkerSelection
}

struct FillCommand: WorkerCommand {
  static let configuration = CommandConfiguration(
    commandName: "fill",
    abstract: "Move all memory of trimmed workers back into RAM.",
    discussion: """
      Their next use is then as fast as before the trim. Do this before a debugger reads the \
      memory, a core is dumped, or the load rises.

      Examples:
        dormouse fill web
        dormouse fill '@bots'
      """)
  static let verb = ControlRequest.Verb.fill
  @OptionGroup var selection: WorkerSelection
}

struct ProtectCommand: WorkerCommand {
  static let configuration = CommandConfiguration(
    commandName: "protect",
    abstract: "Never terminate workers for lack of memory, for a time or until the daemon ends.",
    discussion: """
      A protected worker is still suspended and hibernated, and you can stop it. With --for the \
      protection ends after that time; it stays if the daemon restarts before. `terminate: never` \
      in its policy protects a worker in each run of the daemon. With --off only the policy \
      decides again.

      Examples:
        dormouse protect db
        dormouse protect --for 10m db
        dormouse protect --off db
      """)
  static let verb = ControlRequest.Verb.protect
  @Option(
    name: .customLong("for"),
    help: ArgumentHelp("End the protection after this time, at most 30d.", valueName: "time"))
  var time: String?
  @Flag(help: "Remove the protection.") var off = false
  @OptionGroup var selection: WorkerSelection

  func run() throws { try apply(off ? .unprotect : .protect, seconds: seconds()) }

  /// The time of the protection; nil for the time until the daemon ends.
  private func seconds() throws -> Double? {
    guard let time else { return nil }
    guard !off else {
      throw CommandFailure(.usage, "--off ends the protection at once, without --for")
    }
    return try secondsOfFor(time, upTo: "30d")
  }
}
