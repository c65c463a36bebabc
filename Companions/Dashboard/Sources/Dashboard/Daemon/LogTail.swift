import Control
import Synchronization

/// The end of a worker's log, and the lines that are appended to it.
final class LogTail: Sendable {
  let log: LogLocation
  private let parts: Mutex<Parts>

  private struct Parts: ~Copyable {
    var reader: LogReader
    var cutter = LogLineCutter()
    var isFirst = true
  }

  struct Lines: Encodable, Sendable {
    var lines: [String]
    /// True if these are the last lines: lines that were shown before are removed.
    var isStart: Bool
  }

  /// The maximum number of lines that a page gets at a time.
  static let maxLines = 200

  init(_ log: LogLocation) throws(FileError) {
    self.log = log
    parts = Mutex(Parts(reader: try LogReader(log, lastLines: Self.maxLines)))
  }

  /// Returns the lines that were written since the last call; nil if there are none.
  func next() throws(FileError) -> Lines? {
    try parts.withLock { parts throws(FileError) in
      var lines: [LogLineCutter.Line] = []
      // At most a megabyte is read at a time. If the worker writes faster, the page shows the end.
      for chunk in 0..<16 {
        let bytes = try parts.reader.read()
        lines += parts.cutter.lines(in: bytes)
        if lines.count > Self.maxLines { lines.removeFirst(lines.count - Self.maxLines) }
        if bytes.isEmpty { break }
        if chunk == 15 {
          parts.reader = try LogReader(log, lastLines: Self.maxLines)
          parts.cutter = LogLineCutter()
          parts.isFirst = true
          lines = []
        }
      }
      defer { if !lines.isEmpty { parts.isFirst = false } }
      if lines.isEmpty { return nil }
      return Lines(lines: lines.map { shownLine($0.text) }, isStart: parts.isFirst)
    }
  }
}
