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

  /// The lines above the table, which may be too long for a terminal.
  public var about: [String] {
    let text = """
      \(trace): \(workers) workers, \(fixed(hours, 1)) h, \(uses) uses; they would hold \
      \(fixed(footprintGigabytes, 1)) GB, the machine has \(fixed(memoryGigabytes, 1)) GB
      """
    return [text] + (history?.lines(hours: hours) ?? [])
  }

  /// The titles of the table's columns.
  public static let titles = [
    "policy", "hot %", "suspended %", "hibernated %", "cold %", "wake p50", "p95", "p99 ms",
    "mean wait", "terminated s/h/b/f", "OOM", "lost", "stalled", "GB·h", "written GB", "trims",
    "trimmed GB·h",
  ]
  /// The explanation of the titles, below the table.
  public static let legend = """
    hot … cold: the worker's state when a use came. wake: time until the worker ran, of uses \
    that were not hot; mean wait: over all uses, ms. terminated for lack of memory: suspended/\
    hibernated/background/foreground workers. OOM: killed by the kernel, out of memory. lost: uses \
    in progress when their worker was terminated. stalled: uses that came while the kernel \
    reclaimed memory. trimmed GB·h: what trims kept out of RAM.
    """

  /// The rows of the table, one for each report.
  public var rows: [[String]] { reports.map(cells) }

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
}

/// A number with one decimal, or with three if that would be 0.0.
func gigabyteHours(_ value: Double) -> String { fixed(value, value < 0.05 ? 3 : 1) }
