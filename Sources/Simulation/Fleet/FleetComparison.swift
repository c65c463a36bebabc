import Drawing
import Policy

/// The reports of several policies over one trace, side by side.
public struct FleetComparison: Codable, Sendable {
  public var trace: String
  public var workers: Int
  public var uses: Int
  public var hours: Double
  /// The footprint of all workers together if all ran.
  public var footprintGigabytes: Double
  /// The memory of the machine.
  public var memoryGigabytes: Double
  public var reports: [FleetReport]
  /// The journal from which the trace was made. nil: the trace has another source.
  public var history: FleetHistory?

  public init(
    trace: Trace, machine: MachineModel, reports: [FleetReport], history: FleetHistory? = nil
  ) {
    self.history = history
    self.trace = trace.name
    workers = trace.workers.count
    uses = trace.useCount
    hours = Double(trace.length) / 3_600_000
    footprintGigabytes = Double(trace.footprint.bytes) / 1_073_741_824
    memoryGigabytes = Double(machine.memory.bytes) / 1_073_741_824
    self.reports = reports
  }

  /// The title of a report's row. It contains the order only if two reports of a policy differ in
  /// it.
  public func title(_ report: FleetReport) -> String {
    let namesakes = reports.filter { $0.policy == report.policy }
    guard Set(namesakes.map(\.order)).count > 1 else { return report.policy }
    return "\(report.policy) [\(report.order.joined(separator: ", "))]"
  }

  /// The table for a terminal of `width` columns (nil: no limit), or as Markdown.
  public func rendered(asMarkdown: Bool = false, width: Int? = nil) -> String {
    let about = """
      \(trace): \(workers) workers, \(fixed(hours, 1)) h, \(uses) uses; they would hold \
      \(fixed(footprintGigabytes, 1)) GB, the machine has \(fixed(memoryGigabytes, 1)) GB
      """
    let rows = [Self.heads] + reports.map(cells)
    let head =
      filled(about, to: width ?? .max)
      + (history?.lines(hours: hours) ?? []).map { filled($0, to: width ?? .max) }.joined()
    let legend = filled(Self.legend, to: min(width ?? .max, Self.legendWidth))
    return head + "\n" + (asMarkdown ? markdown(rows) : plain(rows, width)) + "\n" + legend
  }

  private static let heads = [
    "policy", "hot %", "suspended %", "hibernated %", "cold %", "wake p50", "p95", "p99 ms",
    "mean wait", "terminated s/h/b/f", "OOM", "lost", "stalled", "GB·h", "written GB", "trims",
    "trimmed GB·h",
  ]
  private static let legendWidth = 95
  private static let legend = """
    hot … cold: the worker's state when a use came. wake: time until the worker ran, of uses \
    that were not hot; mean wait: over all uses, ms. terminated for lack of memory: suspended/\
    hibernated/background/foreground workers. OOM: killed by the kernel, out of memory. lost: uses \
    in progress when their worker was terminated. stalled: uses that came while the kernel \
    reclaimed memory. trimmed GB·h: what trims kept out of RAM.
    """

  private func cells(_ report: FleetReport) -> [String] {
    func share(_ state: FleetReport.StateAtUse) -> String { fixed(report.share(state) * 100, 2) }
    let states = ["suspended", "hibernated", "background", "foreground"]
    let launching = report.terminated["launching"] ?? 0
    let terminated = states.map { state in
      String((report.terminated[state] ?? 0) + (state == "foreground" ? launching : 0))
    }
    return [
      title(report), share(.hot), share(.suspended), share(.hibernated), share(.cold),
      fixed(report.wake.p50, 1), fixed(report.wake.p95, 1), fixed(report.wake.p99, 1),
      fixed(report.all.mean, 2), terminated.joined(separator: "/"), String(report.outOfMemory),
      String(report.lostUses), String(report.stalledUses),
      gigabyteHours(report.memoryGigabyteHours), fixed(report.writtenGigabytes, 2),
      String(report.trims), gigabyteHours(report.trimmedGigabyteHours),
    ]
  }

  /// The table as text. Columns that don't fit continue in further blocks, each with the policies'
  /// names.
  private func plain(_ rows: [[String]], _ width: Int?) -> String {
    let widths = Self.heads.indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
    var blocks: [[Int]] = [[0]]
    var used = widths[0]
    for column in Self.heads.indices.dropFirst() {
      if let width, used + 2 + widths[column] > width, blocks[blocks.count - 1].count > 1 {
        blocks.append([0])
        used = widths[0]
      }
      blocks[blocks.count - 1].append(column)
      used += 2 + widths[column]
    }
    return blocks.map { block in
      rows.map { row in
        block.map { column in
          let room = String(repeating: " ", count: widths[column] - row[column].count)
          return column == 0 ? row[column] + room : room + row[column]
        }.joined(separator: "  ") + "\n"
      }.joined()
    }.joined(separator: "\n")
  }

  private func markdown(_ rows: [[String]]) -> String {
    let lines = rows.map { "| " + $0.joined(separator: " | ") + " |\n" }
    let rule = "|---|" + String(repeating: "---:|", count: Self.heads.count - 1) + "\n"
    return lines[0] + rule + lines.dropFirst().joined()
  }
}

/// Breaks a text at blanks into lines of at most `width` characters, unless a word is longer.
func filled(_ text: String, to width: Int) -> String {
  var lines: [String] = []
  for word in text.split(separator: " ") {
    if let last = lines.last, last.count + 1 + word.count <= width {
      lines[lines.count - 1] = "\(last) \(word)"
    } else {
      lines.append(String(word))
    }
  }
  return lines.map { $0 + "\n" }.joined()
}

/// A number with one decimal, or with three if that would be 0.0.
func gigabyteHours(_ value: Double) -> String { fixed(value, value < 0.05 ? 3 : 1) }
