import ArgumentParser
import Control
import Glibc
import Linux

/// The terminal's alternate screen, which is redrawn in place while keys are read as they are
/// pressed. It uses only codes that every terminal since the VT100 and xterm understands. `close`
/// restores the earlier screen.
final class LiveScreen {
  /// The events of one wait.
  struct Input {
    /// Keys, as the terminal sends them.
    var bytes: [UInt8] = []
    /// True if the terminal was closed.
    var hasEnded = false
    /// True if the terminal's size has changed, so that the screen must be drawn again.
    var isResized = false
    var signal: Int32?
  }

  private let signals: SignalQueue
  private var before = termios()
  private var isOpen = true

  init() throws {
    // The signals are blocked first: a signal after the change of modes would leave the terminal in
    // them.
    signals = try SignalQueue([SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH])
    try check(
      "asking", on: "the terminal", result: kernelResult { tcgetattr(STDIN_FILENO, &before) })
    var raw = before
    // Keys are read at once and not shown; Ctrl-C is still a signal.
    raw.c_lflag &= ~tcflag_t(ICANON | ECHO)
    try check(
      "setting", on: "the terminal",
      result: kernelResult { tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) })
    // The text switches to the alternate screen and hides the cursor.
    try Output.write("\u{1B}[?1049h\u{1B}[?25l")
  }

  deinit { close() }

  func close() {
    guard isOpen else { return }
    isOpen = false
    // The terminal may be closed, and then nothing can be restored.
    try? Output.write("\u{1B}[?25h\u{1B}[?1049l")
    tcsetattr(STDIN_FILENO, TCSADRAIN, &before)
  }

  /// Draws the lines in one write from the upper left, so that nothing flickers. Each line is
  /// cleared before its text is drawn: after a text of the whole width, clearing would remove its
  /// last character.
  func show(_ lines: [String]) throws {
    let text = lines.map { "\u{1B}[K" + $0 }.joined(separator: "\r\n")
    let isFull = lines.count >= Terminal.size.rows
    try Output.write("\u{1B}[H\(text)" + (isFull ? "" : "\r\n\u{1B}[J"))
  }

  /// Waits until a key or a signal arrives, one of the descriptors is readable, or the deadline has
  /// passed.
  func wait(until deadline: Deadline, orFor others: [Int32] = []) throws -> Input {
    var entries = ([STDIN_FILENO, signals.raw] + others).map {
      pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
    }
    var input = Input()
    let count = try waitForEvents(&entries, milliseconds: deadline.remainingMilliseconds)
    if count == 0 { return input }
    if entries[1].revents != 0, let number = signals.next() {
      switch number {
      // A stop by Ctrl-Z would leave the terminal in these modes, so it is ignored.
      case SIGTSTP: break
      case SIGWINCH: input.isResized = true
      default: input.signal = number
      }
    }
    if entries[0].revents != 0 { readKeys(&input) }
    return input
  }

  private func readKeys(_ input: inout Input) {
    var bytes = [UInt8](repeating: 0, count: 64)
    let count = bytes.withUnsafeMutableBytes { read(STDIN_FILENO, $0.baseAddress, $0.count) }
    input.hasEnded = count <= 0
    input.bytes = Array(bytes.prefix(max(count, 0)))
  }

  /// Shows the daemon's answers to `ps` until q is pressed, and asks again after each `delay`. The
  /// daemon may be busy; keys work meanwhile.
  ///
  /// - Parameter lines: The lines to show for an answer. It is called again if the terminal's size
  ///   changes.
  func renew(
    every delay: Duration, from daemon: inout DaemonConnection,
    _ lines: (_ answer: ControlResponse, _ size: (columns: Int, rows: Int), _ isNew: Bool) ->
      [String]
  ) throws {
    var last: ControlResponse?
    var asked: UInt64? = try daemon.client.send(.ps)
    var next = Deadline(in: delay)
    while true {
      var isNew = false
      if let id = asked, let response = try daemon.response(to: id, within: .zero) {
        guard response.result == .done else { throw CommandFailure(response) }
        (last, asked, isNew) = (response, nil, true)
      }
      if let last { try show(lines(last, Terminal.size, isNew)) }
      if asked == nil, next.hasPassed {
        asked = try daemon.client.send(.ps)
        next = Deadline(in: delay)
      }
      let input = try wait(
        until: asked == nil ? next : Deadline(in: .seconds(1)),
        orFor: asked == nil ? [] : [daemon.client.descriptor])
      // The exit code is the one by which a shell reports a program that a signal has ended.
      if let number = input.signal { throw ExitCode(128 + number) }
      // Ctrl-D ends it, too.
      if input.hasEnded || input.bytes.contains(where: { "qQ\u{4}".utf8.contains($0) }) { return }
    }
  }
}
