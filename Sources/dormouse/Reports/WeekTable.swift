import Control

/// The output of `dormouse report`: a table for each week, the newest first.
func renderWeeks(
  _ reports: [WeekReport], width: Int? = nil, color: Bool = false
) -> String {
  let weeks = Set(reports.map(\.week)).sorted(by: >)
  let blocks = weeks.map { week -> String in
    var table = Table(columns: [
      .init(title: "NAME", minWidth: 12), .number("LAUNCHES"), .number("CRASHES"),
      .number("TIME-OUTS"), .number("JETSAM"), .number("SLEPT"), .number("HIBERNATED"),
      .number("RESUMED"), .number("P50"), .number("P95"), .number("ASLEEP"), .number("SAVED"),
      .number("AVERAGE"), .number("PEAK"), .number("ALIVE"),
    ])
    table.rows = reports.filter { $0.week == week }.map(weekRow)
    let title = Color.bold.paint("week of \(escaped(week))", if: color)
    let lines = [title] + table.folded(width: width, color: color)
    return (lines + leakLines(reports.filter { $0.week == week }, width)).joined(separator: "\n")
      + "\n"
  }
  return blocks.joined(separator: "\n")
}

/// The lines below a week's table; none if no leak is suspected.
private func leakLines(_ reports: [WeekReport], _ width: Int?) -> [String] {
  let names = reports.filter { $0.leakSuspicions > 0 }.map { report in
    escaped(report.worker)
      + (report.leakSuspicions > 1 ? " (\(counted(report.leakSuspicions, "time")))" : "")
  }
  if names.isEmpty { return [] }
  return wrapped(
    "leak suspected: \(names.joined(separator: ", ")) (`dormouse explain NAME` has the evidence)",
    to: width)
}

/// The memory that hibernation and trims saved, on average over the time that the worker was alive.
private func averageSavedText(_ report: WeekReport) -> String {
  guard report.aliveSeconds > 0 else { return "-" }
  let average = max(report.savedByteHours * 3600 / report.aliveSeconds, 0)
  return average < 9e18 ? sizeText(Int64(average)) : "?"
}

private func weekRow(_ report: WeekReport) -> [Table.Cell] {
  func bad(_ count: Int) -> Table.Cell { .init("\(count)", count > 0 ? .red : nil) }
  let crashes = report.crashes + report.failedLaunches + report.watchdogTerminations
  return [
    .init(escaped(report.worker)), .init("\(report.launches)"), bad(crashes),
    bad(report.launchTimeouts), bad(report.memoryTerminations), .init("\(report.suspensions)"),
    .init("\(report.hibernations)"), .init("\(report.resumes)"),
    .init(report.resumeP50.map(durationText) ?? "-"),
    .init(report.resumeP95.map(durationText) ?? "-"),
    .init(
      report.aliveSeconds > 0
        ? percentText(min(report.asleepSeconds / report.aliveSeconds * 100, 100)) : "-"),
    .init(averageSavedText(report)),
    .init(sizeText(report.averageFootprint)), .init(sizeText(report.peakFootprint)),
    .init(durationText(report.aliveSeconds)),
  ]
}
