import Control
import Glibc

/// The terminal's abilities, if there is a terminal.
enum Terminal {
  /// True if standard output gets colours: it is a terminal that isn't dumb, and NO_COLOR isn't set
  /// (no-color.org).
  static var showsColor: Bool { showsColor(STDOUT_FILENO) }

  /// True if this descriptor gets colours.
  static func showsColor(_ descriptor: Int32) -> Bool {
    guard isatty(descriptor) == 1 else { return false }
    let environment = ProcessEnvironment.current().variables
    return environment["NO_COLOR", default: ""].isEmpty && environment["TERM"] != "dumb"
  }

  /// False if the locale isn't UTF-8. Without a locale, UTF-8 is assumed.
  static var showsUnicode: Bool {
    let environment = ProcessEnvironment.current().variables
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].lazy.compactMap { environment[$0] }
      .first { !$0.isEmpty }
    guard let locale = locale?.lowercased() else { return true }
    return locale.contains("utf-8") || locale.contains("utf8")
  }

  /// True if standard output is a terminal.
  static var isOutput: Bool { isatty(STDOUT_FILENO) == 1 }

  /// True if standard output is a terminal from which keys can be read.
  static var isInteractive: Bool { isOutput && isatty(STDIN_FILENO) == 1 }

  /// The width in columns; nil if standard output isn't a terminal. COLUMNS overrides the
  /// terminal's width.
  static var width: Int? {
    guard isatty(STDOUT_FILENO) == 1 else { return nil }
    let said = ProcessEnvironment.current().variables["COLUMNS"].flatMap { Int($0) }
    if let said, said > 0 { return said }
    return measured()?.columns
  }

  /// The terminal's size. If it is unknown, a VT100's is assumed.
  static var size: (columns: Int, rows: Int) { measured() ?? (80, 24) }

  /// The width in columns of standard error; nil if it isn't a terminal.
  static var widthOfErrors: Int? {
    isatty(STDERR_FILENO) == 1 ? measured(STDERR_FILENO)?.columns : nil
  }

  private static func measured(
    _ descriptor: Int32 = STDOUT_FILENO
  ) -> (columns: Int, rows: Int)? {
    var size = winsize()
    guard ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0, size.ws_row > 0
    else { return nil }
    return (Int(size.ws_col), Int(size.ws_row))
  }
}
