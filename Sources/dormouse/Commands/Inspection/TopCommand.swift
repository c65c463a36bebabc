import ArgumentParser
import Control
import Glibc
import Linux

struct TopCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "top",
    abstract: "Watch the workers, the largest footprint first; q quits.",
    discussion: """
      Looks once a second, and at once on any key but q. Where standard output is no terminal, or \
      with --once, it prints one look and ends.
      """)
  @OptionGroup var connection: ConnectionOptions
  @Flag(help: "Print one look, and end.") var once = false
  @Option(
    name: [.customShort("d"), .long],
    help: ArgumentHelp("The time between looks, from 100ms to 1h.", valueName: "duration"),
    transform: durationOption)
  var delay: Duration = .seconds(1)

  func validate() throws {
    guard (.milliseconds(100) ... .seconds(3600)).contains(delay) else {
      throw ValidationError("--delay is from 100ms to 1h.")
    }
  }

  func run() throws {
    var daemon = try connection.connect()
    guard !once, isatty(STDOUT_FILENO) == 1, isatty(STDIN_FILENO) == 1 else {
      let response = try daemon.ask(.ps)
      let lines = lines(response, width: Terminal.width, height: nil)
      return try Output.line(lines.joined(separator: "\n"))
    }
    let screen = try LiveScreen()
    // The terminal is given back before anything is said about what went wrong.
    defer { screen.close() }
    var next = Happening.nothing
    while true {
      switch next {
      case .quit: return
      case .signal(let number):
        // As the shell tells of a program that a signal has ended.
        throw ExitCode(128 + number)
      case .nothing, .other: break
      }
      guard let response = try ask(&daemon, while: screen, ended: &next) else { continue }
      let size = Terminal.size
      try screen.show(lines(response, width: size.columns, height: size.rows))
      next = try screen.wait(delay)
    }
  }

  private typealias Happening = LiveScreen.Happening

  /// nil: something else came first, and the daemon, who may be busy, isn't waited for any longer.
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
