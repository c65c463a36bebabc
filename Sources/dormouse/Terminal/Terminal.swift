import Control
import Glibc

/// What the terminal can show, where there is one.
enum Terminal {
  /// Colours on standard output: a terminal that isn't dumb, and no NO_COLOR (no-color.org).
  static var showsColor: Bool {
    guard isatty(STDOUT_FILENO) == 1 else { return false }
    let environment = ProcessEnvironment.current().variables
    return environment["NO_COLOR", default: ""].isEmpty && environment["TERM"] != "dumb"
  }

  /// Standard output is one.
  static var isOutput: Bool { isatty(STDOUT_FILENO) == 1 }

  /// Columns; nil where standard output is no terminal.
  static var width: Int? {
    guard isatty(STDOUT_FILENO) == 1 else { return nil }
    return measured()?.columns
  }

  /// What a terminal that doesn't know its size is taken for: a VT100.
  static var size: (columns: Int, rows: Int) { measured() ?? (80, 24) }

  private static func measured() -> (columns: Int, rows: Int)? {
    var size = winsize()
    guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0
    else { return nil }
    return (Int(size.ws_col), Int(size.ws_row))
  }
}
