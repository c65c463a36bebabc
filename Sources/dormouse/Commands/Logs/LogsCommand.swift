import ArgumentParser
import Control
import Journal

struct LogsCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "logs", abstract: "Show the output of workers.",
    discussion: """
      Without a name the output of all workers is shown; with several names or a pattern, the \
      output of these workers. Each line follows its worker's name. Lines of several workers are \
      in the order in which they were written; the daemon records the time every few seconds, not \
      for each line. With one name and no other option the output is printed as it was written, \
      byte for byte.

      With --follow it ends when the named workers have ended and will not be started again, or \
      when the daemon has ended and no other follows within 5 s.

      On a terminal, control characters other than colours are escaped: a worker can't move your \
      cursor or change what you type. With NO_COLOR set, the names have no colours.

      With --json each line is an object.

      Examples:
        dormouse logs -f
        dormouse logs web 'bot*' --since 10m --timestamps
      """)
  @Flag(name: .shortAndLong, help: "Print new lines as they are written.") var follow = false
  @Option(
    name: [.customShort("n"), .long],
    help: ArgumentHelp(
      "Print this many lines of each worker from the end; `all` prints whole files. Default: 50, "
        + "with --since all.", valueName: "count"))
  var lines: LineCount?
  @Option(
    help: ArgumentHelp(
      "Print only what was written in this time, such as 10m; some seconds more may be shown.",
      valueName: "time"))
  var since: Since?
  @Flag(
    name: .shortAndLong,
    help: ArgumentHelp(
      "Print the time before each line (UTC). A new line has the time at which it was read, any "
        + "other line its time to within seconds."))
  var timestamps = false
  @Flag(help: "Print no names before the lines.") var noPrefix = false
  @Flag(help: "Print JSON, an object for each line (docs/json.md).") var json = false
  @OptionGroup var connection: ConnectionOptions
  @Argument(
    help: ArgumentHelp(
      "The workers: names, groups (@bots), or patterns such as 'bot0*'. Default: all.",
      valueName: "name"),
    completion: .workers)
  var names: [String] = []

  func run() throws {
    if names.count == 1, let name = names.first, !WorkerPatterns.isPattern(name), since == nil,
      !timestamps, !json
    {
      return try OneLog(worker: name, connection: connection)
        .show(lastLines: lastLines, follow: follow)
    }
    let chosen = ChosenLogs(names: names, connection: connection)
    let logs = MergedLogs(options)
    let workerLogs = try chosen.logs()
    logs.add(workerLogs, isPast: true)
    if logs.isEmpty, !follow { Output.complain("no worker has any output yet") }
    try logs.printPast()
    if follow { try followOn(logs, chosen) }
    try logs.printUnfinished()
  }

  private var lastLines: Int? { (lines ?? LineCount(limit: since == nil ? 50 : nil)).limit }

  private var options: MergedLogs.Options {
    let isOne = names.count == 1 && !WorkerPatterns.isPattern(names.first ?? "*")
    return MergedLogs.Options(
      lastLines: lastLines, since: since.map { (Clock.now() - $0.duration).seconds },
      showsTimes: timestamps, json: json, hasPrefix: !noPrefix && !isOne)
  }

  private func followOn(_ logs: MergedLogs, _ chosen: ChosenLogs) throws {
    while true {
      _ = try logs.follow()
      switch chosen.poll() {
      case .more(let added): logs.add(added, isPast: false)
      case .ended(let reason):
        // All output has been written, so it is read once more.
        try logs.printPast()
        return Output.complain(reason)
      }
    }
  }
}

/// The value of `-n`: a number, or `all`.
struct LineCount: ExpressibleByArgument {
  /// The number of lines; nil for no limit.
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
