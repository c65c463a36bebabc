import Control
import Synchronization

/// The end of a worker's log, and what is appended to it.
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
    /// These are the last lines: what was shown before isn't shown any more.
    var isStart: Bool
  }

  /// Lines that a page gets at a time.
  static let most = 200

  init(_ log: LogLocation) throws(FileError) {
    self.log = log
    parts = Mutex(Parts(reader: try LogReader(log, lastLines: Self.most)))
  }

  /// The lines that have been written since the last call; nil: none.
  func next() throws(FileError) -> Lines? {
    try parts.withLock { parts throws(FileError) in
      var lines: [LogLineCutter.Line] = []
      // At most a megabyte at a time: of a worker that writes faster, the page shows the end.
      for chunk in 0..<16 {
        let bytes = try parts.reader.read()
        lines += parts.cutter.lines(in: bytes)
        if lines.count > Self.most { lines.removeFirst(lines.count - Self.most) }
        if bytes.isEmpty { break }
        if chunk == 15 {
          parts.reader = try LogReader(log, lastLines: Self.most)
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
