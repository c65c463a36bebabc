import ArgumentParser
import Control
import Glibc
import Linux

struct TopCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "top",
    abstract: "Watch the workers, the largest footprint first; q quits.",
    discussion: """
      The table is renewed each second, and at once on any key but q. If standard output is no terminal, \
      or with --once, it is printed once. With --json an object is printed each time, until --count \
      of them are printed or the daemon has ended.
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
    var daemon = try connection.connect()
    guard !json, !once, isatty(STDOUT_FILENO) == 1, isatty(STDIN_FILENO) == 1 else {
      return try printLooks(&daemon)
    }
    let screen = try LiveScreen()
    // The terminal is restored before an error is printed.
    defer { screen.close() }
    var next = Happening.nothing
    var looks = 0
    while true {
      switch next {
      case .quit: return
      case .signal(let number):
        // The code with which a shell reports a program that a signal has ended.
        throw ExitCode(128 + number)
      case .nothing, .other: break
      }
      guard let response = try ask(&daemon, while: screen, ended: &next) else { continue }
      let size = Terminal.size
      try screen.show(lines(response, width: size.columns, height: size.rows))
      looks += 1
      if looks == count { return }
      next = try screen.wait(delay)
    }
  }

  /// Prints the tables one after the other, for a file, a pipe or a program.
  private func printLooks(_ daemon: inout DaemonConnection) throws {
    // Without a terminal, text is printed once, and JSON until the daemon or the reader has ended.
    let most = count ?? (once || !json ? 1 : nil)
    var looks = 0
    while true {
      let response = try daemon.ask(.ps)
      if json {
        try Output.json(
          TopFrame(
            time: Clock.now().text, daemon: response.daemon, workers: response.workers ?? []))
      } else {
        let lines = lines(response, width: Terminal.width, height: nil)
        try Output.line((looks > 0 ? "\n" : "") + lines.joined(separator: "\n"))
      }
      looks += 1
      if looks == most { return }
      // A signal ends the pause and this process.
      pauseThread(for: delay)
    }
  }

  private typealias Happening = LiveScreen.Happening

  /// nil: a key or a signal came first. The daemon may be busy, and its answer isn't waited for.
  private func ask(
    _ daemon: inout DaemonConnection, while screen: LiveScreen, ended: inout Happening
  ) throws -> ControlResponse? {
    let id = try daemon.client.send(.ps)
    while true {
      let early = try daemon.response(to: id, within: .milliseconds(300))
      guard let response = early else {
        let happened = try screen.wait(.zero)
        guard happened.isEnd else { continue }
        ended = happened
        return nil
      }
      guard response.result == .done else { throw CommandFailure(response) }
      return response
    }
  }

  private func lines(_ response: ControlResponse, width: Int?, height: Int?) -> [String] {
    renderTop(
      response.workers ?? [], daemon: response.daemon, width: width, height: height,
      color: Terminal.showsColor)
  }
}
