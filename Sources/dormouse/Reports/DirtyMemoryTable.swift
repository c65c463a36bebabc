import Control

/// The output of `dormouse footprint NAME`, and the end of that of `dormouse status --verbose
/// NAME`.
func renderDirtyMemory(
  _ report: DirtyMemoryReport, width: Int? = nil, color: Bool = false
) -> String {
  let name = escaped(report.worker)
  guard report.processes > 0 else { return "\(name) has no process\n" }
  let swapped = report.swapped > 0 ? ", and \(sizeText(report.swapped)) swapped" : ""
  let unreadable = counted(report.unreadable, "process", ending: "es")
  let hidden =
    report.unreadable > 0 ? "; \(unreadable) more can't be read (another user's)" : ""
  let title =
    "\(name): \(sizeText(report.dirty)) of dirty memory in "
    + "\(counted(report.processes, "process", ending: "es"))\(swapped)\(hidden)"
  var table = Table(columns: [
    .number("DIRTY"), .number("SWAPPED"), .number("MAPPINGS"), "WHAT",
  ])
  table.rows = report.mappings.map {
    row($0.dirty, swapped: $0.swapped, count: $0.count, what: whatText($0))
  }
  let others = report.others
  if others.count > 0 {
    table.rows.append(
      row(others.dirty, swapped: others.swapped, count: others.count, what: "all others"))
  }
  let lines = table.lines(width: width, color: color)
  return (wrapped(title, to: width) + lines).joined(separator: "\n") + "\n"
}

private func row(
  _ dirty: Int64, swapped: Int64, count: Int, what: String
) -> [Table.Cell] {
  [
    .init(sizeText(dirty)), .init(swapped > 0 ? sizeText(swapped) : "-"), .init("\(count)"),
    .init(what),
  ]
}

private func whatText(_ mappings: DirtyMemoryReport.Mappings) -> String {
  let name = mappings.name.map(escaped)
  switch mappings.kind {
  case "heap": return "heap"
  case "stack": return "stacks"
  case "anonymous": return name.map { "anonymous memory named \($0)" } ?? "anonymous memory"
  default: return name ?? escaped(mappings.kind)
  }
}
