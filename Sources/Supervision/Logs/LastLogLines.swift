import Linux

extension WorkerProcess {
  /// A reader that may be used on any thread, since the log's file system may not answer. It is nil
  /// if the worker has no log of its own.
  public var lastLogLines: LastLogLines? {
    plan.inheritance == nil
      ? LastLogLines(destination: plan.logDestination, logStart: logStart) : nil
  }
}

/// The end of a worker's log, limited to the output of one run.
public struct LastLogLines: Sendable {
  let destination: LogDestination
  /// The offset in bytes at which the run's output begins.
  let logStart: Int64

  /// The last lines that aren't blank, each shortened to 200 characters. Returns nil if the log
  /// can't be read.
  public func readLines(upTo count: Int) -> [String]? {
    // A log that can't be read has no last lines to show.
    let tail = try? destination.reading { (file, size) throws(SystemCallError) in
      // If the log was rotated since, its output begins at 0.
      let start = max(logStart <= size ? logStart : 0, size - Self.maxTail)
      try file.seek(to: start, path: destination.path)
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
