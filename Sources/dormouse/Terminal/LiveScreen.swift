import Control
import Glibc
import Linux

/// The terminal's other screen, redrawn in place, with keys that come as they are pressed. Only
/// what every terminal since the VT100 and xterm understands. `close` gives back what was there.
final class LiveScreen {
  enum Happening: Equatable {
    case nothing, quit
    /// Another key, or another size: look again.
    case other
    case signal(Int32)

    var isEnd: Bool { self != .nothing && self != .other }
  }

  private let signals: SignalQueue
  private var before = termios()
  private var isOpen = true

  init() throws {
    // First: one that came in between would leave the terminal as nobody wants it.
    signals = try SignalQueue([SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH])
    try check(
      "asking", on: "the terminal", result: kernelResult { tcgetattr(STDIN_FILENO, &before) })
    var raw = before
    // Keys at once, and not shown; Ctrl-C still is a signal.
    raw.c_lflag &= ~tcflag_t(ICANON | ECHO)
    try check(
      "setting", on: "the terminal",
      result: kernelResult { tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) })
    // The other screen, and no cursor.
    try Output.write("\u{1B}[?1049h\u{1B}[?25l")
  }

  deinit { close() }

  func close() {
    guard isOpen else { return }
    isOpen = false
    // The terminal may be gone.
    try? Output.write("\u{1B}[?25h\u{1B}[?1049l")
    tcsetattr(STDIN_FILENO, TCSADRAIN, &before)
  }

  /// In one write, from the upper left, each line's old rest cleared: nothing flickers.
  func show(_ lines: [String]) throws {
    let text = lines.joined(separator: "\u{1B}[K\r\n")
    try Output.write("\u{1B}[H\(text)\u{1B}[K\u{1B}[J")
  }

  /// Until something happens, or the time is over.
  func wait(_ time: Duration) throws -> Happening {
    let deadline = Deadline(in: time)
    var entries = [STDIN_FILENO, signals.raw].map {
      pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
    }
    let count = try waitForEvents(&entries, milliseconds: deadline.remainingMilliseconds)
    if count == 0 { return .nothing }
    if entries[1].revents != 0, let number = signals.next() {
      switch number {
      // Stopped by Ctrl-Z, it would leave the terminal as it is now: better not at all.
      case SIGWINCH, SIGTSTP: return .other
      default: return .signal(number)
      }
    }
    return entries[0].revents == 0 ? .nothing : readKey()
  }

  private func readKey() -> Happening {
    var bytes = [UInt8](repeating: 0, count: 64)
    let count = bytes.withUnsafeMutableBytes { read(STDIN_FILENO, $0.baseAddress, $0.count) }
    // The terminal is gone, or Ctrl-D.
    if count <= 0 { return .quit }
    let quitting = Array("qQ\u{4}".utf8)
    return bytes[..<count].contains { quitting.contains($0) } ? .quit : .other
  }
}
