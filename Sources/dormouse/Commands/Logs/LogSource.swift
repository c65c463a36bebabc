import Control
import Linux

/// One worker's output, line by line, with the time by which each line had been written.
final class LogSource {
  struct Line {
    /// Without its end.
    var bytes: [UInt8]
    /// Seconds since 1970; nil: not known, and later than all that is known.
    var time: Int64?
  }

  let worker: String
  let path: String
  private var reader: LogReader
  private let timeline: LogTimeline
  /// Read, and not yet a line.
  private var rest: [UInt8] = []
  private var restOffset: Int
  private var lines: ArraySlice<Line> = []

  /// A line that doesn't end is cut there: 64 KiB.
  private static let longest = LogLineCutter.most

  /// - Parameters:
  ///   - lastLines: begin at most this many lines before the end.
  ///   - since: and with nothing that was written before this time, in seconds since 1970.
  init(_ log: WorkerLogPlace, lastLines: Int?, since: Int64?) throws {
    worker = log.worker
    path = log.file.path
    timeline = LogTimeline(path: log.times, log: path)
    let least = since.flatMap(timeline.offset) ?? 0
    reader = try LogReader(log.file, lastLines: lastLines, from: least)
    restOffset = reader.offset
  }

  /// Whether the log's times are known.
  var hasTimes: Bool { !timeline.isEmpty }

  /// The next line without taking it; nil: none has ended since.
  func peek() throws -> Line? {
    while lines.isEmpty {
      let bytes = try reader.read()
      if bytes.isEmpty { return nil }
      cut(bytes)
    }
    return lines.first
  }

  func take() throws -> Line? {
    let line = try peek()
    if line != nil { lines.removeFirst() }
    return line
  }

  /// What has no end of line yet.
  func takeRest() -> Line? {
    guard !rest.isEmpty else { return nil }
    defer { rest = [] }
    return Line(bytes: rest, time: timeline.time(at: restOffset + rest.count))
  }

  private func cut(_ bytes: [UInt8]) {
    rest += bytes
    var found: [Line] = []
    var start = 0
    while start < rest.count {
      let end = rest[start...].firstIndex(of: UInt8(ascii: "\n"))
      guard end != nil || rest.count - start > Self.longest else { break }
      let stop = min(end ?? .max, start + Self.longest)
      let next = stop == end ? stop + 1 : stop
      var line = rest[start..<stop]
      if line.last == UInt8(ascii: "\r") { line.removeLast() }
      found.append(Line(bytes: Array(line), time: timeline.time(at: restOffset + next)))
      start = next
    }
    rest.removeFirst(start)
    restOffset += start
    lines = found[...]
  }
}

/// Where a worker's output is.
struct WorkerLogPlace: Hashable {
  var worker: String
  var file: LogLocation
  var times: String?

  /// nil: it has no log of its own.
  init?(_ report: WorkerReport) {
    guard let file = LogLocation(report) else { return nil }
    (worker, self.file, times) = (report.name, file, report.logTimes)
  }
}
