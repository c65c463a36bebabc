import Control
import Glibc
import Linux

/// The terminal's alternate screen, redrawn in place, with keys read as they are pressed. It uses only codes
/// that every terminal since the VT100 and xterm understands. `close` restores the earlier screen.
final class LiveScreen {
  enum Happening: Equatable {
    case nothing, quit
    /// Another key, or a new size: draw again.
    case other
    case signal(Int32)

    var isEnd: Bool { self != .nothing && self != .other }
  }

  private let signals: SignalQueue
  private var before = termios()
  private var isOpen = true

  init() throws {
    // This comes first: a signal after the change of modes would leave the terminal in them.
    signals = try SignalQueue([SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH])
    try check(
      "asking", on: "the terminal", result: kernelResult { tcgetattr(STDIN_FILENO, &before) })
    var raw = before
    // Keys are read at once and not shown; Ctrl-C is still a signal.
    raw.c_lflag &= ~tcflag_t(ICANON | ECHO)
    try check(
      "setting", on: "the terminal",
      result: kernelResult { tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) })
    // Switches to the alternate screen and hides the cursor.
    try Output.write("\u{1B}[?1049h\u{1B}[?25l")
  }

  deinit { close() }

  func close() {
    guard isOpen else { return }
    isOpen = false
    // The terminal may be closed.
    try? Output.write("\u{1B}[?25h\u{1B}[?1049l")
    tcsetattr(STDIN_FILENO, TCSADRAIN, &before)
  }

  /// Draws in one write from the upper left and clears the rest of each line, so that nothing flickers.
  func show(_ lines: [String]) throws {
    let text = lines.joined(separator: "\u{1B}[K\r\n")
    try Output.write("\u{1B}[H\(text)\u{1B}[K\u{1B}[J")
  }

  /// Waits until a key or a signal comes, or the time is over.
  func wait(_ time: Duration) throws -> Happening {
    let deadline = Deadline(in: time)
    var entries = [STDIN_FILENO, signals.raw].map {
      pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
    }
    let count = try waitForEvents(&entries, milliseconds: deadline.remainingMilliseconds)
    if count == 0 { return .nothing }
    if entries[1].revents != 0, let number = signals.next() {
      switch number {
      // A stop by Ctrl-Z would leave the terminal in these modes, so it is ignored.
      case SIGWINCH, SIGTSTP: return .other
      default: return .signal(number)
      }
    }
    return entries[0].revents == 0 ? .nothing : readKey()
  }

  private func readKey() -> Happening {
    var bytes = [UInt8](repeating: 0, count: 64)
    let count = bytes.withUnsafeMutableBytes { read(STDIN_FILENO, $0.baseAddress, $0.count) }
    // The terminal was closed, or Ctrl-D was pressed.
    if count <= 0 { return .quit }
    let quitting = Array("qQ\u{4}".utf8)
    return bytes[..<count].contains { quitting.contains($0) } ? .quit : .other
  }
}
