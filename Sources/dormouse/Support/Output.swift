import Control
import Glibc

/// Writes directly to the descriptors: the C library's `stdout` is a mutable global, which Swift 6
/// refuses, and a verb needs no buffer.
enum Output {
  static func write(_ bytes: [UInt8]) throws(FileError) {
    try writeAll(bytes, to: STDOUT_FILENO, "writing to", path: "standard output")
  }

  static func write(_ text: String) throws(FileError) { try write(Array(text.utf8)) }

  static func line(_ text: String) throws(FileError) { try write(text + "\n") }

  /// Prints a text that `render` makes for this terminal's width and colours.
  static func show(_ render: (_ width: Int?, _ color: Bool) -> String) throws(FileError) {
    try write(render(Terminal.width, Terminal.showsColor))
  }

  /// Prints a report as JSON, or as the text that `render` makes for this terminal.
  static func show<Report: Encodable>(
    _ report: Report, asJSON isJSON: Bool,
    _ render: (_ report: Report, _ width: Int?, _ color: Bool) -> String
  ) throws {
    if isJSON { return try json(report) }
    try write(render(report, Terminal.width, Terminal.showsColor))
  }

  /// Prints an object as a JSON document with its schema number.
  static func json(_ value: some Encodable) throws {
    let text: [UInt8]
    do {
      text = try WireCodec.json(for: JSONDocument(value))
    } catch {
      throw CommandFailure(.internalError, "can't print the answer: \(error)")
    }
    try write(text + [UInt8(ascii: "\n")])
  }

  /// Prints `dormouse: …` on standard error. If that can't be written, only the exit code reports
  /// the error.
  static func complain(_ text: String) {
    let line = "dormouse: \(text)"
    // Diagnostics have lines of their own, with carets below them, and aren't wrapped.
    let lines = text.contains("\n") ? [line] : wrapped(line, to: Terminal.widthOfErrors)
    standardError(lines.joined(separator: "\n") + "\n")
  }

  static func standardError(_ text: String) {
    let bytes = Array(text.utf8)
    _ = bytes.withUnsafeBytes { Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
  }
}
