import ArgumentParser
import Control
import Glibc
import Linux

struct LogsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "logs", abstract: "Show a worker's output.",
    discussion: """
      With --follow it ends when the worker has ended and will not be started again, or when the daemon \
      has ended and no other follows within 5 s.

      On a terminal, control characters other than colours are escaped: a worker can't move your cursor \
      or change what you type. A file or a pipe gets the bytes as they were written.

      With --json each line is an object. A line of the log has no time; with --follow a new line has \
      the time at which it was read.
      """)
  @Flag(name: .shortAndLong, help: "Print new lines as they are written.") var follow = false
  @Option(
    name: [.customShort("n"), .long],
    help: ArgumentHelp(
      "Print this many lines from the end; `all` prints the whole file.", valueName: "count"))
  var lines = LineCount(limit: 50)
  @Flag(help: "Print JSON, an object for each line (docs/json.md).") var json = false
  @OptionGroup var connection: ConnectionOptions
  @Argument(help: "The worker.", completion: .workers) var name: String

  func run() throws {
    let path = try logPath()
    // The file is read without the daemon, and past its end.
    var reader = try LogReader(path: path, lastLines: lines.limit)
    var printer = LogPrinter(worker: name, json: json)
    var last: String?
    var isPast = true
    while true {
      let bytes = try reader.read()
      if !bytes.isEmpty {
        try printer.print(bytes, isPast: isPast)
      } else if follow, last == nil {
        isPast = false
        reader.waitForChange()
        last = endOfWriting()
      } else {
        // The file was read once more after the end was known, so all output has been printed.
        try printer.finish(isPast: isPast)
        if let last { Output.complain(last) }
        return
      }
    }
  }

  /// The reason why nothing more will be written, if there is one.
  private func endOfWriting() -> String? {
    for attempt in 0..<50 {
      do {
        var daemon = try connection.connect()
        let worker = try daemon.ask(.status, worker: name).workers?.first
        let isOver = worker?.state == "terminated" && worker?.restartsInSeconds == nil
        return isOver ? "\(escaped(name)) has ended" : nil
      } catch let failure as CommandFailure where failure.exit == .unknownWorker {
        return "\(escaped(name)) has been removed"
      } catch {
        // The next daemon may be starting, as at an upgrade.
        if attempt < 49 { pauseThread(for: .milliseconds(100)) }
      }
    }
    return "the daemon has ended"
  }

  private func logPath() throws -> String {
    var daemon = try connection.connect()
    let response = try daemon.ask(.status, worker: name)
    guard let worker = response.workers?.first else { throw CommandFailure.noReport(of: name) }
    guard let log = worker.log else {
      throw CommandFailure(exit: .notDone, text: "\(escaped(name)) has no log")
    }
    return log
  }
}

/// Prints a worker's output as it is, safe for a terminal, or as JSON.
private struct LogPrinter {
  let worker: String
  private var filter: TerminalFilter?
  private var cutter: LogLineCutter?

  init(worker: String, json: Bool) {
    self.worker = worker
    cutter = json ? LogLineCutter() : nil
    filter = !json && Terminal.isOutput ? TerminalFilter() : nil
  }

  /// - Parameter isPast: the bytes were in the log before the verb started.
  mutating func print(_ bytes: [UInt8], isPast: Bool) throws {
    if let lines = cutter?.lines(in: bytes) { return try print(lines, isPast) }
    try Output.write(filter?.filter(bytes) ?? bytes)
  }

  mutating func finish(isPast: Bool) throws {
    if let lines = cutter?.finish() { return try print(lines, isPast) }
    try Output.write(filter?.finish() ?? [])
  }

  private func print(_ lines: [LogLineCutter.Line], _ isPast: Bool) throws {
    let time = isPast ? nil : Clock.now().text
    for line in lines {
      try Output.json(
        LogLineReport(
          worker: worker, text: line.text, time: time, isCut: line.isCut ? true : nil))
    }
  }
}

/// `-n`: a number, or `all`.
struct LineCount: ExpressibleByArgument {
  /// nil: no limit.
  var limit: Int?

  init(limit: Int?) { self.limit = limit }

  init?(argument: String) {
    if argument == "all" {
      limit = nil
    } else if let count = Int(argument), count >= 0 {
      limit = count
    } else {
      return nil
    }
  }

  var defaultValueDescription: String { limit.map { "\($0)" } ?? "all" }
}
