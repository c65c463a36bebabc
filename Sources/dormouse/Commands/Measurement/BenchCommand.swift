import ArgumentParser
import Control
import Bench
import Glibc

struct BenchCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "bench",
    abstract: "Measure how fast a program is back from each kind of sleep.",
    usage: "dormouse bench [<options>] -- <command> [<arguments> ...]",
    discussion: """
      `bench` launches the program without a daemon, and ends it at the end. In each round the \
      program is stopped, frozen, hibernated, swapped out and relaunched. The verb measures the \
      time from the order to wake until the first byte of the response. The exit code is 0 if \
      hibernation was measured, 69 if the program or the machine doesn't permit it, and 1 if the \
      program doesn't start or answer.

      Examples:
        dormouse bench --request http://127.0.0.1:8080/ -- python3 -m http.server 8080
        dormouse bench --ready-tcp 8080 --rounds 20 -- ./server --port 8080
      """)

  @Option(
    help: ArgumentHelp(
      "Send this HTTP request each time: http://127.0.0.1:PORT/PATH.", valueName: "url"))
  var request: String?
  @Option(
    help: ArgumentHelp(
      "Run this shell command each time. It succeeds when the program has answered.",
      valueName: "command"))
  var requestCommand: String?
  @Option(
    help: ArgumentHelp(
      "The program is ready when it prints a line with this text.", valueName: "text"))
  var readyLine: String?
  @Option(
    help: ArgumentHelp(
      "The program is ready when it accepts connections at this port.", valueName: "port"))
  var readyTcp: UInt16?
  @Option(
    help: ArgumentHelp("Measure each kind of sleep this often, 1 to 10000.", valueName: "count"))
  var rounds = 10
  @Option(
    help: ArgumentHelp(
      "Compress images at this level of zstd, -7 (fastest) to 19. Default: 1.",
      valueName: "number"))
  var level: Int32?
  @Flag(help: "Compress images with lz4 instead of zstd.")
  var lz4 = false
  @Option(
    name: .customLong("patience"),
    help: ArgumentHelp(
      "Wait this long for the start and for an answer, 1s to 24h. Default: 1m.",
      valueName: "duration"), transform: durationOption)
  var timeout: Duration = .seconds(60)
  @Option(
    help: ArgumentHelp(
      "Write images below this directory. Default: the daemon's state directory.",
      valueName: "directory"),
    completion: .directory)
  var stateDirectory: String?
  @Option(
    help: ArgumentHelp("Also draw the distributions into this SVG file.", valueName: "file"),
    completion: .file())
  var svg: String?
  @Flag(help: "Print JSON (docs/bench.md).")
  var json = false
  @Argument(parsing: .postTerminator, help: "The program and its arguments, after `--`.")
  var command: [String]

  func validate() throws {
    if request != nil, requestCommand != nil {
      throw ValidationError("--request and --request-command exclude each other.")
    }
    if readyLine != nil, readyTcp != nil {
      throw ValidationError("--ready-line and --ready-tcp exclude each other.")
    }
    if let request, HTTPAddress(request) == nil {
      throw ValidationError(
        "--request takes http://127.0.0.1:PORT/PATH, not '\(escaped(request))'.")
    }
    if readyTcp == 0 { throw ValidationError("--ready-tcp takes a port from 1 to 65535.") }
    try checkNumber("--rounds", rounds, in: 1...10_000)
    try checkNumber("--level", level, in: -7...19)
    if level != nil, lz4 { throw ValidationError("--level is zstd's; don't use it with --lz4.") }
    if !(.seconds(1) ... .seconds(86_400)).contains(timeout) {
      throw ValidationError("--patience is from 1s to 24h.")
    }
  }

  func run() throws {
    let options = try options()
    // A picture that can't be written is reported before the work.
    let picture = try svg.map { try PictureFile($0) }
    let report: BenchReport
    do {
      report = try Bench.run(options, progress: Self.show)
    } catch {
      picture?.discard()
      Progress.clear()
      throw error.failure
    }
    Progress.clear()
    try picture?.write(report.picture)
    if json {
      try Output.json(report)
    } else {
      try Output.write(report.rendered(width: Terminal.width ?? 100, color: Terminal.showsColor))
    }
    if report.isInterrupted == true {
      Output.complain("interrupted after \(report.rounds) of \(rounds) rounds")
      // The exit code is the one by which a shell reports a program that SIGINT has ended.
      throw ExitCode(128 + SIGINT)
    }
    if !report.hibernates {
      throw CommandFailure(
        .missingMechanism,
        "hibernation was not measured: \(escaped(report.hibernationRefusal ?? "not tried"))")
    }
  }

  private func options() throws -> BenchOptions {
    let here = try currentDirectory()
    let paths = DefaultPaths.ofThisProcess()
    let environment = ProcessEnvironment.current().variables
    let program = try locate(command.first, in: here, path: environment["PATH"])
    var options = BenchOptions(
      command: [program] + command.dropFirst(), directory: here, environment: environment,
      imageDirectory: stateDirectory.map { absolutePath($0, in: here) } ?? paths.stateDirectory)
    options.request =
      request.flatMap { HTTPAddress($0) }.map { .http($0) } ?? requestCommand.map { .command($0) }
    options.readiness = readyLine.map { .logLine($0) } ?? readyTcp.map { .tcp($0) }
    options.rounds = rounds
    options.compression = lz4 ? .lz4 : .zstd(level: level ?? 1)
    options.timeout = timeout
    return options
  }

  // MARK: progress

  private static func show(_ progress: BenchProgress) {
    let what = progress.mechanism.map {
      "round \(progress.round) of \(progress.rounds): \($0.title)"
    }
    Progress.show(what ?? "starting the program")
  }
}

extension BenchError {
  fileprivate var failure: CommandFailure {
    switch self {
    // The signal itself ends this process, unless it is handled.
    case .interrupted, .program, .failed: CommandFailure(.notDone, description)
    case .directory: CommandFailure(.cannotCreate, description)
    }
  }
}
