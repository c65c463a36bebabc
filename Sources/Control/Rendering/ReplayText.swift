/// `dormouse replay`: whether the same came of the same.
public func renderReplay(
  _ report: ReplayReport, clock: (String) -> String, color: Bool = false
) -> String {
  func paint(_ text: String, _ hue: Color) -> String { color ? hue.paint(text) : text }
  let span = [report.from, report.to].compactMap { $0 }.map(clock).joined(separator: " to ")
  var lines = [
    "\(counted(report.segments, "segment")) of \(counted(report.daemons, "daemon")), "
      + "\(escaped(span)): \(counted(report.events, "event")), "
      + counted(report.directives, "directive")
  ]
  if report.differingEvents == 0 {
    lines.append(paint("the engine decides the same again, every time", .green))
  } else {
    let count = counted(report.differingEvents, "event")
    lines.append(paint("the engine decides otherwise after \(count); the first:", .red))
    for difference in report.differences {
      lines.append("\(clock(difference.time))  \(escaped(difference.event))")
      lines.append("  recorded  \(difference.recorded.map(escaped) ?? "nothing more")")
      lines.append("  now       \(difference.replayed.map(escaped) ?? "nothing more")")
    }
  }
  return lines.joined(separator: "\n") + "\n"
}

/// `dormouse replay --policy`: two lines a worker.
public func renderComparison(
  _ comparison: PolicyComparison, clock: (String) -> String, width: Int? = nil,
  color: Bool = false
) -> String {
  var table = Table(columns: [
    .init(title: "NAME"), .init(title: "POLICY"), .init(title: "TERMINATED", alignsRight: true),
    .init(title: "LAUNCHED", alignsRight: true), .init(title: "WARNED", alignsRight: true),
    .init(title: "SLEPT", alignsRight: true), .init(title: "HIBERNATED", alignsRight: true),
    .init(title: "RESUMED", alignsRight: true), .init(title: "WAKE COST", alignsRight: true),
    .init(title: "FREED", alignsRight: true), .init(title: "AVERAGE", alignsRight: true),
    .init(title: "IN FRONT", alignsRight: true), .init(title: "BEHIND", alignsRight: true),
    .init(title: "ASLEEP", alignsRight: true), .init(title: "ON DISK", alignsRight: true),
    .init(title: "GONE", alignsRight: true),
  ])
  table.rows = comparison.workers.flatMap { pair in
    [
      countsRow(pair.worker ?? "together", "recorded", pair.recorded),
      countsRow("", comparison.policy, pair.other),
    ]
  }
  var lines = table.lines(width: width, color: color)
  if comparison.relaunches > 0 {
    lines.append(
      "under \(escaped(comparison.policy)), \(counted(comparison.relaunches, "relaunch", "es")) "
        + "would have been needed, \(durationText(comparison.relaunchSeconds)) in all")
  }
  lines.append("")
  if comparison.differingChanges == 0 {
    lines.append("no worker would have been in another state")
  } else {
    lines.append(
      "\(counted(comparison.differingChanges, "change")) of state in only one of the two; "
        + "the first:")
  }
  lines += comparison.firstChanges.map { change in
    let who = change.isRecorded ? "recorded only" : "\(comparison.policy) only"
    let hue: Color = change.isRecorded ? .cyan : .yellow
    return "\(escaped(clock(change.time))) \(escaped(change.worker)) "
      + "\(color ? hue.paint(escaped(who)) : escaped(who)): "
      + "\(escaped(change.from)) → \(escaped(change.to)): \(escaped(change.why))"
  }
  return lines.joined(separator: "\n") + "\n"
}

private func counted(_ count: Int, _ noun: String, _ ending: String) -> String {
  "\(count) \(noun)\(count == 1 ? "" : ending)"
}

private func countsRow(
  _ name: String, _ policy: String, _ counts: PolicyComparison.Counts
) -> [Table.Cell] {
  func time(_ state: String) -> Table.Cell {
    .init(counts.seconds[state].map { $0 > 0 ? durationText($0) : "-" } ?? "-")
  }
  return [
    .init(escaped(name), .bold), .init(escaped(policy)), .init("\(counts.terminations)"),
    .init("\(counts.launches)"), .init("\(counts.warnings)"), .init("\(counts.suspensions)"),
    .init("\(counts.hibernations)"), .init("\(counts.resumes)"),
    .init(durationText(counts.resumeSeconds)), .init(sizeText(counts.freed)),
    .init(sizeText(counts.averageFootprint)), time("foreground"), time("background"),
    time("suspended"), time("hibernated"), time("terminated"),
  ]
}
