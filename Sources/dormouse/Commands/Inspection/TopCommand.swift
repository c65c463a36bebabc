import ArgumentParser
import Control
import Linux

struct TopCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "top",
    abstract: "Watch the workers, and change them by a key; ? lists the keys, q quits.",
    discussion: """
      The list is renewed each second, and the log of the selected worker is followed: beside the \
      list from 120 columns on, below it in a narrower terminal. Arrows select a worker; s sorts, \
      / filters; l hides the log and shows it again, u and d scroll it, Enter shows it without the \
      list; t and m show the processes and the memory instead; W, S, H, F, B, R and T wake, \
      suspend, hibernate, foreground, background, restart and terminate the worker. It needs 60 \
      columns and 10 rows.

      If standard output is no terminal, or with --once, the table is printed once, the largest \
      footprint first. With --json an object is printed each time, until --count of them are \
      printed or the daemon has ended.
      """)
  @Flag(help: "Print the table once, and end.") var once = false
  @Option(
    name: [.customShort("n"), .long],
    help: ArgumentHelp("End after the table was shown this often.", valueName: "count"))
  var count: Int?
  @Option(
    name: [.customShort("d"), .long],
    help: ArgumentHelp(
      "Renew the table this often, 100ms to 1h. Default: 1s.", valueName: "duration"),
    transform: durationOption)
  var delay: Duration = .seconds(1)
  @Flag(help: "Print JSON, an object each time (docs/json.md).") var json = false
  @OptionGroup var connection: ConnectionOptions

  func validate() throws {
    guard (.milliseconds(100) ... .seconds(3600)).contains(delay) else {
      throw ValidationError("--delay is from 100ms to 1h.")
    }
    if let count {
      if once { throw ValidationError("--once or --count, one of the two.") }
      if count < 1 { throw ValidationError("--count is a number from 1 on, not \(count).") }
    }
  }

  func run() throws {
    guard !json, !once, Terminal.isInteractive else {
      var daemon = try connection.connect()
      return try printTables(&daemon)
    }
    try TopSession.show(connection, delay: delay, count: count)
  }

  /// Prints the tables one after another, for a file, a pipe or a program.
  private func printTables(_ daemon: inout DaemonConnection) throws {
    // Without a terminal, text is printed once, and JSON until the daemon or the reader has ended.
    let limit = count ?? (once || !json ? 1 : nil)
    var tables = 0
    while true {
      let response = try daemon.ask(.ps)
      let workers = WorkerOrder.footprint.sorted(response.workers ?? [])
      if json {
        try Output.json(
          TopFrame(time: Clock.now().text, daemon: response.daemon, workers: workers))
      } else {
        let lines = renderTop(
          workers, daemon: response.daemon, width: Terminal.width, color: Terminal.showsColor)
        try Output.line((tables > 0 ? "\n" : "") + lines.joined(separator: "\n"))
      }
      tables += 1
      if tables == limit { return }
      // A signal ends the pause and this process.
      pauseThread(for: delay)
    }
  }
}
