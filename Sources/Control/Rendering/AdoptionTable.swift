/// The output of `dormouse adopt --dry-run`: a line for each process that a rule matches. Processes
/// that belong to another matching one are only counted.
public func renderAdoptionPreview(
  _ report: AdoptionPreviewReport, width: Int? = nil, color: Bool = false
) -> String {
  if report.rules == 0 {
    return wrapped("the configuration has no rules (`adopt:` in dormouse.yaml)", to: width)
      .joined(separator: "\n") + "\n"
  }
  let shown = report.findings.filter { $0.result.code != "contained" }
  var lines: [String] = []
  if !shown.isEmpty {
    var table = Table(columns: [
      .init(title: "WORKER", minWidth: 12), "MODE", .number("FOOTPRINT"),
      .init(title: "COMMAND", minWidth: 16), "RESULT",
    ])
    table.rows = shown.map(row)
    lines += table.lines(width: width, color: color, wrapsLast: true)
  }
  lines += wrapped(totals(report, shown), to: width)
  return lines.joined(separator: "\n") + "\n"
}

private func row(_ finding: AdoptionFinding) -> [Table.Cell] {
  let count = finding.processes > 1 ? " (\(finding.processes) processes)" : ""
  return [
    .init(escaped(finding.worker)), .init(escaped(finding.mode)),
    .init(finding.footprint.map(sizeText) ?? "-"),
    .init(escaped(shortCommand(finding.command))),
    .init(escaped(finding.result.text) + count),
  ]
}

/// The program and its first argument without their directories: `node tsserver.js`.
private func shortCommand(_ command: [String]) -> String {
  command.prefix(2).map { word in
    word.hasPrefix("-") ? word : word.split(separator: "/").last.map(String.init) ?? word
  }.joined(separator: " ")
}

private func totals(_ report: AdoptionPreviewReport, _ shown: [AdoptionFinding]) -> String {
  let taken = shown.filter { ["would_adopt", "adopted"].contains($0.result.code) }
  let footprint = taken.reduce(0) { $0 + ($1.footprint ?? 0) }
  let contained = report.findings.count - shown.count
  let suffix = contained == 0 ? "" : "; matching processes inside them: \(contained)"
  return "\(counted(report.rules, "rule")): \(counted(taken.count, "worker")), "
    + "footprint \(sizeText(footprint))\(suffix)"
}
