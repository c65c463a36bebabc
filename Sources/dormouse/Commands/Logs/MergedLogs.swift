import Control
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

  /// Prints all lines that have ended.
  func printPast() throws {
    while let next = try nextPast() { try printer.print(next.line, of: next.worker) }
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

  /// Prints new lines until nothing has been written for a second, or one of `others` can be read.
  func follow(or others: [Int32] = []) throws -> LogWatch.Outcome {
    while true {
      let now = Clock.now().text
      for source in sources {
        while let line = try source.pop() { try printer.print(line, of: source.worker, at: now) }
      }
      let outcome = watch.wait(for: sources.map(\.path), or: others)
      if outcome != .changed { return outcome }
    }
  }
}
