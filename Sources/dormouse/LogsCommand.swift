import ArgumentParser
import Control

struct LogsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "logs", abstract: "Show what a worker has written.",
    discussion: """
      At a terminal, control characters other than colours are shown escaped: what a worker writes can't \
      move your cursor or change what you type. In a file or a pipe every byte is as it was written.
      """)
  @OptionGroup var connection: ConnectionOptions
  @Argument(help: "A worker.", completion: .workers) var name: String
  @Flag(name: .shortAndLong, help: "Go on as it writes more.") var follow = false
  @Option(
    name: [.customShort("n"), .long],
    help: ArgumentHelp("So many lines from the end; `all` for the whole file.", valueName: "count"))
  var lines = LineCount(limit: 50)

  func run() throws {
    let path = try logPath()
    // The daemon isn't needed any more: the file is read without it, and past its end.
    var reader = try LogReader(path: path, lastLines: lines.limit)
    var filter = Terminal.isOutput ? TerminalFilter() : nil
    while true {
      let bytes = try reader.read()
      if !bytes.isEmpty {
        try Output.write(filter?.filter(bytes) ?? bytes)
      } else if follow {
        reader.waitForChange()
      } else {
        return try Output.write(filter?.finish() ?? [])
      }
    }
  }

  private func logPath() throws -> String {
    var daemon = try connection.connect()
    let response = try daemon.ask(.status, worker: name)
    guard let worker = response.workers?.first else { throw CommandFailure.noReport(of: name) }
    guard let log = worker.log else {
      throw CommandFailure(exit: .notDone, text: "\(escaped(name)) keeps no log")
    }
    return log
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
