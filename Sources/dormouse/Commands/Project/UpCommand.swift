import ArgumentParser
import Control
import Glibc
import Linux

struct UpCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "up",
    abstract: "Start the daemon of this project, with its workers, and show their output.",
    discussion: """
      The project is the nearest dormouse.yaml upwards from the current directory. It gets a \
      daemon of its own, with a socket and a state directory of its own, so that several projects \
      run side by side. The other verbs use that daemon when they are called in the project's \
      directory.

      Ctrl-C stops the workers and the daemon; a second Ctrl-C leaves workers running that haven't \
      ended by then, without a daemon, and names them. `dormouse up` takes them over again, and \
      `dormouse down` stops them. If the project's daemon runs already, its configuration is read \
      again, workers that have failed are started, and Ctrl-C ends the output only.

      With --detach the verb ends when the workers' processes run, ready or not, with exit code 1 \
      if one can't start or has failed within a second. The others run, and `dormouse down` stops \
      them. A worker that waits for another to be ready is started later.

      If the daemon that this verb has started crashes, it is started again, and takes its workers \
      over.

      A worker that can't start, or has ended without a request, gets a line on standard error \
      with the cause. There is also one when a worker is suspended, hibernated or woken: why, what \
      it freed, and what all workers save now. A worker that does so often gets six lines in ten \
      minutes.

      The environment of the daemon is that of the `dormouse up` that started it.

      Examples:
        dormouse up
        dormouse up --top
        dormouse up -d && dormouse logs -f
      """)
  @Flag(name: .shortAndLong, help: "Don't show the output, and end when the workers are launched.")
  var detach = false
  @Flag(name: .shortAndLong, help: "Print the time before each line (UTC).") var timestamps = false
  @Flag(
    help: "Show the screen of `dormouse top` instead: the workers and their logs; q is as Ctrl-C.")
  var top = false
  @Option(
    help: ArgumentHelp(
      "Use this policy instead of the configuration's: a name or a file.", valueName: "policy"),
    completion: .policies)
  var policy: String?
  @Option(
    help: ArgumentHelp(
      "The project: its directory, or its name in `dormouse ls`.", valueName: "project"))
  var project: String?

  func validate() throws {
    guard top else { return }
    if detach { throw ValidationError("--detach or --top, one of the two.") }
    if !Terminal.isInteractive {
      throw ValidationError("--top needs a terminal, for standard input and output.")
    }
  }

  func run() throws {
    let paths = DefaultPaths.ofThisProcess()
    let target = try ProjectLookup(paths).required(project)
    let starter = ProjectDaemon(project: target, paths: paths)
    // The signals are blocked before the daemon starts, so that Ctrl-C right after it isn't lost.
    let signals = detach ? nil : try SignalQueue([SIGINT, SIGTERM, SIGHUP, SIGQUIT])
    let start = Clock.now().seconds
    let process = try starter.start(policy: policy)
    let connection = try ConnectionOptions.parse(["--project", target.directory])
    if process == nil {
      var daemon = try connection.connect()
      if let policy { try daemon.check(policy) }
      Output.complain(escaped(try daemon.ask(.reload).text))
      // The workers that have failed are started, and not waited for.
      for worker in try daemon.ask(.ps).workers ?? [] where failureText(of: worker) != nil {
        _ = try daemon.client.send(.start, worker: worker.name)
      }
    }
    var daemon = try connection.connect()
    let workers = try daemon.ask(.ps).workers ?? []
    Output.complain(
      "project \(escaped(target.name)): \(counted(workers.count, "worker")); "
        + (signals == nil
          ? "`dormouse logs -f` shows their output, `dormouse down` stops them"
          : process != nil ? "Ctrl-C stops them" : "Ctrl-C leaves them running"))
    Self.complain(ofUnstarted: workers, target)
    guard let signals else {
      if try daemon.complainsOfFailures() { throw ExitCode(CommandExit.notDone.rawValue) }
      return
    }
    let started = process.map { StartedDaemon(project: starter, policy: policy, process: $0) }
    try ProjectOutput(
      connection, signals, started: started, since: start, showsTimes: timestamps, isScreen: top
    ).show()
  }

  /// Names the workers that aren't started. In an imported file they are often most of its workers.
  private static func complain(ofUnstarted workers: [WorkerReport], _ project: Project) {
    let names = workers.filter {
      $0.state == "terminated" && $0.reason.code == "never_started" && $0.waitsFor == nil
    }.map { escaped($0.name) }
    if names.isEmpty { return }
    Output.complain(
      "not started: \(names.joined(separator: ", ")) (`autostart: false` in "
        + "\(escaped(project.configuration)); comments there say what is missing, and `dormouse "
        + "start NAME` starts one)")
  }
}

extension DaemonConnection {
  /// Waits for processes to begin, not for their readiness, and names the workers that have failed.
  /// The result is false if none has.
  fileprivate mutating func complainsOfFailures() throws -> Bool {
    let deadline = Deadline(in: .seconds(10))
    var workers: [WorkerReport] = []
    repeat {
      workers = try ask(.ps).workers ?? []
      // A program that ends at once, such as one with a wrong argument, counts as launched before
      // it ends.
      if !workers.contains(where: {
        $0.pid == nil ? $0.state == "launching" : $0.secondsInState < 1
      }) {
        break
      }
      pauseThread(for: .milliseconds(50))
    } while !deadline.hasPassed
    let failures = workers.compactMap(failureText)
    for line in failures { Output.complain(line) }
    return !failures.isEmpty
  }
}

struct DownCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "down", abstract: "Stop this project's workers and its daemon.",
    discussion: """
      The verb ends when the daemon has ended. Logs, records and the history stay for the next \
      `dormouse up`. Workers that a daemon has left without one, after a second Ctrl-C of `up`, \
      are stopped too.
      """)
  @Flag(help: "Show what would happen, and change nothing.") var dryRun = false
  @Option(
    help: ArgumentHelp(
      "The project: its directory, or its name in `dormouse ls`.", valueName: "project"))
  var project: String?

  func run() throws {
    let paths = DefaultPaths.ofThisProcess()
    let target = try ProjectLookup(paths).required(project)
    let daemon = ProjectDaemon(project: target, paths: paths)
    guard daemon.isRunning else {
      let left = try daemon.leftWorkers().map(escaped).joined(separator: ", ")
      if left.isEmpty {
        throw CommandFailure(
          .noDaemon, "the daemon of project \(escaped(target.name)) isn't running")
      }
      if dryRun { return try Output.line("would be stopped (left without a daemon): \(left)") }
      Output.complain("left without a daemon, and stopped now: \(left)")
      return try Output.line(daemon.stopLeftWorkers())
    }
    if dryRun {
      var connection = try ConnectionOptions.parse(["--project", target.directory]).connect()
      return try connection.forecastEnd("down", keepsWorkers: false, json: false)
    }
    try Output.line(daemon.stop())
  }
}

struct AttachCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "attach", abstract: "Show the output of this project's workers as it is written.",
    discussion: """
      It shows what `dormouse logs --follow` shows, and prints a line on standard error when a \
      worker falls asleep or wakes. Ctrl-C ends only the output.
      """)
  @Flag(name: .shortAndLong, help: "Print the time before each line (UTC).") var timestamps = false
  @OptionGroup var connection: ConnectionOptions

  func run() throws {
    let signals = try SignalQueue([SIGINT, SIGTERM, SIGHUP, SIGQUIT])
    try ProjectOutput(connection, signals, started: nil, showsTimes: timestamps).show()
  }
}
