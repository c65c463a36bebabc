import Control

/// One worker's output, line by line, with the time by which each line had been written.
final class LogSource {
  struct Line {
    /// The line without its line end.
    var bytes: [UInt8]
    /// The time in seconds since 1970. nil means that it is unknown, and later than all recorded
    /// times.
    var time: Int64?
    /// True if the line is longer than `maxLine`, and continues in the next one.
    var isCut = false
  }

  let worker: String
  let path: String
  private var reader: LogReader
  private let timeline: LogTimeline
  /// Bytes that were read, and that have no end of line yet.
  private var unfinished: [UInt8] = []
  private var unfinishedOffset: Int
  private var lines: ArraySlice<Line> = []

  /// A longer line is cut at this length: 64 KiB.
  private static let maxLine = LogLineCutter.maxLine

  /// - Parameters:
  ///   - lastLines: The maximum number of lines before the end at which to begin.
  ///   - since: The earliest time of lines to read, in seconds since 1970.
  init(_ log: WorkerLog, lastLines: Int?, since: Int64?) throws {
    worker = log.worker
    path = log.file.path
    timeline = LogTimeline(path: log.times, log: path)
    let start = since.flatMap(timeline.offset) ?? 0
    reader = try LogReader(log.file, lastLines: lastLines, from: start)
    unfinishedOffset = reader.offset
  }

  /// True if the log's times are recorded.
  var hasTimes: Bool { !timeline.isEmpty }

  /// Returns the next line without consuming it. The result is nil if no other line has ended.
  func peek() throws -> Line? {
    while lines.isEmpty {
      let bytes = try reader.read()
      if bytes.isEmpty { return nil }
      cut(bytes)
    }
    return lines.first
  }

  func pop() throws -> Line? {
    let line = try peek()
    if line != nil { lines.removeFirst() }
    return line
  }

  /// Returns the bytes that have no end of line yet, as a line.
  func popUnfinished() -> Line? {
    guard !unfinished.isEmpty else { return nil }
    defer { unfinished = [] }
    return Line(bytes: unfinished, time: timeline.time(at: unfinishedOffset + unfinished.count))
  }

  private func cut(_ bytes: [UInt8]) {
    unfinished += bytes
    var complete: [Line] = []
    var start = 0
    while start < unfinished.count {
      let end = unfinished[start...].firstIndex(of: UInt8(ascii: "\n"))
      guard end != nil || unfinished.count - start > Self.maxLine else { break }
      let stop = min(end ?? .max, start + Self.maxLine)
      let next = stop == end ? stop + 1 : stop
      var line = unfinished[start..<stop]
      if stop == end, line.last == UInt8(ascii: "\r") { line.removeLast() }
      complete.append(
        Line(
          bytes: Array(line), time: timeline.time(at: unfinishedOffset + next),
          isCut: stop != end))
      start = next
    }
    unfinished.removeFirst(start)
    unfinishedOffset += start
    lines = complete[...]
  }
}

/// The location of a worker's output.
struct WorkerLog: Hashable {
  var worker: String
  var file: LogLocation
  var times: String?

  /// The result is nil if the worker has no log of its own.
  init?(_ report: WorkerReport) {
    guard let file = LogLocation(report) else { return nil }
    (worker, self.file, times) = (report.name, file, report.logTimes)
  }
}
