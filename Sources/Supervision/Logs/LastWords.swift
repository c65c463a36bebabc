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

  public func read() -> String? {
    // A log that can't be read has no last line to show.
    let tail = try? place.reading { (file, size) throws(SystemCallError) in
      // If the log was rotated meanwhile, it begins again.
      let start = max(logStart <= size ? logStart : 0, size - Self.maxTail)
      try file.seek(to: start, path: place.path)
      return try file.read(upTo: Int(size - start))
    }
    return tail.flatMap(Self.lastLine)
  }

  private static let maxTail: Int64 = 4096
  private static let maxLine = 200

  static func lastLine(of bytes: [UInt8]) -> String? {
    let lines = bytes.split { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }
    let isBlank = { (byte: UInt8) in byte <= UInt8(ascii: " ") || byte == 0x7F }
    guard let line = lines.last(where: { !$0.allSatisfy(isBlank) }) else { return nil }
    let printable = line.map { isBlank($0) ? UInt8(ascii: " ") : $0 }
    let text = String(decoding: printable, as: UTF8.self).drop { $0 == " " }
    return text.count > maxLine ? text.prefix(maxLine) + "…" : String(text)
  }
}
