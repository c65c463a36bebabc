import Control

/// One worker's output, line by line, with the time by which each line had been written.
final class LogSource {
  struct Line {
    /// The line without its line end.
    var bytes: [UInt8]
    /// The time in seconds since 1970. nil means that it is unknown, and later than all recorded
    /// times.
    var time: Int64?
    /// True if the line is too long, and continues in the next one.
    var isCut = false
  }

  let worker: String
  let path: String
  private var reader: LogReader
  private let timeline: LogTimeline
  private var cutter: LogLineCutter
  private var lines: ArraySlice<Line> = []

  /// - Parameters:
  ///   - lastLines: The maximum number of lines before the end at which to begin.
  ///   - since: The earliest time of lines to read, in seconds since 1970.
  init(_ log: WorkerLog, lastLines: Int?, since: Int64?) throws {
    worker = log.worker
    path = log.file.path
    timeline = LogTimeline(path: log.times, log: path)
    let start = since.flatMap(timeline.offset) ?? 0
    reader = try LogReader(log.file, lastLines: lastLines, from: start)
    cutter = LogLineCutter(offset: reader.offset)
  }

  /// True if the log's times are recorded.
  var hasTimes: Bool { !timeline.isEmpty }

  /// Returns the next line without consuming it. The result is nil if no other line has ended.
  func peek() throws -> Line? {
    while lines.isEmpty {
      let bytes = try reader.read()
      if bytes.isEmpty { return nil }
      lines = cutter.lines(in: bytes).map(timed)[...]
    }
    return lines.first
  }

  func pop() throws -> Line? {
    let line = try peek()
    if line != nil { lines.removeFirst() }
    return line
  }

  /// Returns the bytes that have no end of line yet, as a line.
  func popUnfinished() -> Line? { cutter.finish().map(timed) }

  private func timed(_ line: LogLineCutter.Line) -> Line {
    Line(bytes: line.bytes, time: timeline.time(at: line.end), isCut: line.isCut)
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
