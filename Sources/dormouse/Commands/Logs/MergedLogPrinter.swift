import Control
import Journal

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
