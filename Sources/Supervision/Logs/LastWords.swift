import Glibc
import Linux

extension WorkerProcess {
  /// The last line that this run wrote to its log, for the operator: on one line, 200 characters at most. `nil`
  /// if it wrote nothing, or its log is no file.
  public func lastWords() -> String? { lastWordsReader?.read() }

  /// Reads them on any thread: the log's file system may not answer. `nil`: it has no log.
  public var lastWordsReader: LastWords? {
    plan.inheritance == nil ? LastWords(place: plan.logPlace, logStart: logStart) : nil
  }
}

/// The end of a log, of one run of its worker.
public struct LastWords: Sendable {
  let place: LogPlace
  /// Where the run's output begins.
  let logStart: Int64

  public func read() -> String? { readLines(upTo: 1)?.last }

  /// The last lines that aren't blank, each as `read` gives it. `nil`: the log can't be read.
  public func readLines(upTo count: Int) -> [String]? {
    // A log that can't be read has no last lines to show.
    let tail = try? place.reading { (file, size) throws(SystemCallError) in
      // If the log was rotated meanwhile, it begins again.
      let start = max(logStart <= size ? logStart : 0, size - Self.maxTail)
      try file.seek(to: start, path: place.path)
      return try file.read(upTo: Int(size - start))
    }
    return tail.map { Self.lastLines(count, of: $0) }
  }

  private static let maxTail: Int64 = 4096
  private static let maxLine = 200

  static func lastLines(_ count: Int, of bytes: [UInt8]) -> [String] {
    let isBlank = { (byte: UInt8) in byte <= UInt8(ascii: " ") || byte == 0x7F }
    let lines = bytes.split { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }
      .filter { !$0.allSatisfy(isBlank) }
    return lines.suffix(count).map { line in
      let printable = line.map { isBlank($0) ? UInt8(ascii: " ") : $0 }
      let text = String(decoding: printable, as: UTF8.self).drop { $0 == " " }
      return text.count > maxLine ? text.prefix(maxLine) + "…" : String(text)
    }
  }
}
