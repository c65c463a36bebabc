import Control

/// The output of `dormouse replay`: whether the same events led to the same decisions.
func renderReplay(
  _ report: ReplayReport, clock: (String) -> String, color: Bool = false
) -> String {
  let span = [report.from, report.to].compactMap { $0 }.map(clock).joined(separator: " to ")
  var lines = [
    "\(counted(report.segments, "segment")) of \(counted(report.daemons, "daemon")), "
      + "\(escaped(span)): \(counted(report.events, "event")), "
      + counted(report.directives, "directive")
  ]
  if report.differingEvents == 0 {
    lines.append(Color.green.paint("every decision is the same as recorded", if: color))
  } else {
    let count = counted(report.differingEvents, "event")
    lines.append(Color.red.paint("different decisions after \(count); the first:", if: color))
    for difference in report.differences {
      lines.append("\(clock(difference.time))  \(escaped(difference.event))")
      lines.append("  recorded  \(difference.recorded.map(escaped) ?? "nothing more")")
      lines.append("  now       \(difference.replayed.map(escaped) ?? "nothing more")")
    }
  }
  return lines.joined(separator: "\n") + "\n"
}

/// The output of `dormouse replay --policy`: two lines for each worker.
func renderComparison(
  _ comparison: PolicyComparison, clock: (String) -> String, width: Int? = nil,
  color: Bool = false
) -> String {
  let done = comparisonTable(
    [
      "ENDED", "LAUNCHED", "WARNED", "SLEPT", "HIBERNATED", "RESUMED", "WAKE COST", "FREED",
    ], of: comparison, doneCells)
  let spent = comparisonTable(
    ["FOREGROUND", "BACKGROUND", "SUSPENDED", "HIBERNATED", "TERMINATED", "AVERAGE FOOTPRINT"],
    of: comparison,
    spentCells)
  var lines = done.folded(width: width, leading: 2, color: color)
  lines += [""] + spent.folded(width: width, leading: 2, color: color)
  if comparison.relaunches > 0 {
    lines.append(
      "under \(escaped(comparison.policy)), "
        + "\(counted(comparison.relaunches, "relaunch", ending: "es")) "
        + "would have been needed, \(durationText(comparison.relaunchSeconds)) in total")
  }
  lines.append("")
  if comparison.differingChanges == 0 {
    lines.append("no worker would have had another state")
  } else {
    lines.append(
      "\(counted(comparison.differingChanges, "change")) of state under only one of the two "
        + "policies; the first:")
  }
  lines += comparison.firstChanges.map { change in
    let side = change.isRecorded ? "recorded only" : "\(comparison.policy) only"
    let hue: Color = change.isRecorded ? .cyan : .yellow
    return "\(escaped(clock(change.time))) \(escaped(change.worker)) "
      + "\(hue.paint(escaped(side), if: color)): "
      + "\(escaped(change.from)) → \(escaped(change.to)): \(escaped(change.why.text))"
  }
  return lines.joined(separator: "\n") + "\n"
}

private func comparisonTable(
  _ titles: [String], of comparison: PolicyComparison,
  _ cells: (PolicyComparison.Counts) -> [String]
) -> Table {
  var table = Table(columns: ["NAME", "POLICY"] + titles.map(Table.Column.number))
  func row(_ name: String, policy: String, counts: PolicyComparison.Counts) -> [Table.Cell] {
    [.init(escaped(name), .bold), .init(escaped(policy))] + cells(counts).map { .init($0) }
  }
  table.rows = comparison.workers.flatMap { pair in
    [
      row(pair.worker ?? "(all)", policy: "recorded", counts: pair.recorded),
      row("", policy: comparison.policy, counts: pair.other),
    ]
  }
  return table
}

private func doneCells(_ counts: PolicyComparison.Counts) -> [String] {
  [
    "\(counts.terminations)", "\(counts.launches)", "\(counts.warnings)",
    "\(counts.suspensions)", "\(counts.hibernations)", "\(counts.resumes)",
    counts.resumes > 0 ? durationText(counts.resumeSeconds) : "-", sizeText(counts.freed),
  ]
}

private func spentCells(_ counts: PolicyComparison.Counts) -> [String] {
  func time(_ state: String) -> String {
    counts.seconds[state].map { $0 >= 0.5 ? durationText($0) : "-" } ?? "-"
  }
  return ["foreground", "background", "suspended", "hibernated", "terminated"].map(time)
    + [sizeText(counts.averageFootprint)]
}

/// The output of `dormouse replay --policy a,b`: a line for each policy.
func renderTotals(
  _ totals: [PolicyTotals], width: Int? = nil, color: Bool = false
) -> String {
  let titles = [
    "HELD", "SAVED", "WAKES", "RELAUNCHED", "WAITING", "ENDED", "WARNED", "SLEPT", "HIBERNATED",
  ]
  var table = Table(columns: ["POLICY"] + titles.map(Table.Column.number))
  table.rows = totals.map { total in
    [
      .init(escaped(total.policy ?? "recorded"), .bold), .init(sizeText(total.averageFootprint)),
      .init(sizeText(total.averageSaved)), .init("\(total.wakes)"), .init("\(total.relaunches)"),
      .init(total.waitSeconds > 0 ? durationText(total.waitSeconds) : "-"),
      .init("\(total.terminations)"), .init("\(total.warnings)"), .init("\(total.suspensions)"),
      .init("\(total.hibernations)"),
    ]
  }
  return table.folded(width: width, leading: 1, color: color).joined(separator: "\n") + "\n"
}
