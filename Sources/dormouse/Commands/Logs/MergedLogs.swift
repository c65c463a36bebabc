import Control
import Journal
import Linux

/// The output of several workers in one stream, in the order in which it was written if that is
/// recorded.
final class MergedLogs {
  struct Options {
    var lastLines: Int?
    /// The time of the first line to print, in seconds since 1970.
    var since: Int64?
    var showsTimes = false
    var json = false
    /// False for the lines of a single worker.
    var hasPrefix = true
  }

  private let options: Options
  private var sources: [LogSource] = []
  private var printer: MergedLogPrinter
  private var watch = LogWatch()
  /// The problems that were reported already: each one is reported once.
  private var complaints: Set<String> = []

  init(_ options: Options) {
    self.options = options
    printer = MergedLogPrinter(options)
  }

  /// Adds logs that aren't read yet. A log that can't be opened is reported, and tried again at the
  /// next call.
  ///
  /// - Parameter isPast: True if `options` decide which of the lines so far are printed. Otherwise
  ///   all of them are new.
  func add(_ logs: [WorkerLog], isPast: Bool) {
    for log in logs where !sources.contains(where: { $0.worker == log.worker }) {
      do {
        let source = try LogSource(
          log, lastLines: isPast ? options.lastLines : nil, since: isPast ? options.since : nil)
        if options.since != nil, isPast, !source.hasTimes {
          Output.complain(
            "no times are known of the output of \(escaped(log.worker)); showing all of it")
        }
        sources.append(source)
      } catch {
        // A worker that hasn't been launched has no log yet.
        if !isAbsent(log.file.path), complaints.insert("\(error)").inserted {
          Output.complain("\(error)")
        }
      }
    }
    printer.add(sources.map(\.worker))
  }

  var isEmpty: Bool { sources.isEmpty }

  /// The number of lines that are printed before other logs and descriptors have their turn.
  private static let maxAtOnce = 1000
  /// The maximum time of `follow` without a check for other logs.
  private static let checkInterval = Duration.seconds(2)

  /// Prints all lines that have ended, or those until one of `others` can be read: a worker may
  /// write faster than its lines are printed.
  func printPast(orUntil others: [Int32] = []) throws {
    var count = 0
    while let next = try nextPast() {
      try printer.print(next.line, of: next.worker)
      count += 1
      if count % Self.maxAtOnce == 0,
        others.contains(where: { Descriptor.inputEvents(of: $0) != 0 })
      {
        return
      }
    }
  }

  private func nextPast() throws -> (line: LogSource.Line, worker: String)? {
    var earliest: (source: LogSource, time: Int64)?
    for source in sources {
      guard let line = try source.peek() else { continue }
      let time = line.time ?? .max
      if earliest == nil || time < earliest?.time ?? .max { earliest = (source, time) }
    }
    guard let source = earliest?.source, let line = try source.pop() else { return nil }
    return (line, source.worker)
  }

  /// Prints the lines without an end of line, as the last step.
  func printUnfinished() throws {
    for source in sources {
      if let line = source.popUnfinished() { try printer.print(line, of: source.worker) }
    }
  }

  /// Prints new lines until nothing has been written for a second, one of `others` can be read, or
  /// the caller has to check for other logs and for ended workers.
  func follow(or others: [Int32] = []) throws -> LogWatch.Outcome {
    let check = Deadline(in: Self.checkInterval)
    while true {
      let hasMore = try printNew()
      let outcome = watch.wait(for: sources.map(\.path), or: others, waits: !hasMore)
      if outcome != .changed { return outcome }
      if check.hasPassed { return .quiet }
    }
  }

  /// Prints new lines. Returns true if a log may have more of them.
  private func printNew() throws -> Bool {
    let now = Clock.now().text
    var hasMore = false
    for source in sources {
      var count = 0
      while count < Self.maxAtOnce, let line = try source.pop() {
        try printer.print(line, of: source.worker, at: now)
        count += 1
      }
      if count == Self.maxAtOnce { hasMore = true }
    }
    return hasMore
  }
}

/// Prints lines after the name of their worker, coloured on a terminal, or as JSON.
struct MergedLogPrinter {
  private let options: MergedLogs.Options
  private let colors: [Color]
  private let filtersControls = Terminal.isOutput
  private var colorIndices: [String: Int] = [:]
  private var width = 0

  /// The width to which names are padded at most.
  private static let maxPadding = 20

  init(_ options: MergedLogs.Options) {
    self.options = options
    colors = Terminal.showsColor ? [.cyan, .yellow, .green, .magenta, .blue, .red] : []
  }

  mutating func add(_ workers: [String]) {
    for worker in workers where colorIndices[worker] == nil {
      colorIndices[worker] = colorIndices.count
    }
    width = min(workers.map { displayWidth(escaped($0)) }.max() ?? 0, Self.maxPadding)
  }

  /// - Parameter time: The time at which a new line was read. With nil, the line's own time is
  ///   printed.
  func print(_ line: LogSource.Line, of worker: String, at time: String? = nil) throws {
    let time = time ?? line.time.map { WallTime(nanoseconds: $0 * 1_000_000_000).text }
    if options.json {
      return try Output.json(
        LogLineReport(
          worker: worker, text: String(decoding: line.bytes, as: UTF8.self), time: time,
          isCut: line.isCut ? true : nil))
    }
    var bytes: [UInt8] = []
    if options.hasPrefix { bytes += Array(prefix(of: worker).utf8) }
    if options.showsTimes { bytes += Array("\(time ?? Self.unknown) ".utf8) }
    bytes += safe(line.bytes)
    try Output.write(bytes + [UInt8(ascii: "\n")])
  }

  /// The text of an unknown time, which is as long as a time.
  private static let unknown = "-                       "

  private func prefix(of worker: String) -> String {
    let text = padded(escaped(worker), to: width) + " | "
    guard !colors.isEmpty else { return text }
    return colors[(colorIndices[worker] ?? 0) % colors.count].paint(text)
  }

  /// Removes control characters from a line. Each line is filtered alone: a colour that a worker
  /// leaves on doesn't reach other workers' lines.
  private func safe(_ bytes: [UInt8]) -> [UInt8] {
    guard filtersControls else { return bytes }
    var filter = TerminalFilter()
    return filter.filter(bytes) + filter.finish()
  }
}
