/// `dormouse ps`: a line a worker, then the totals and the pressure.
public func renderProcessTable(
  _ workers: [WorkerReport], daemon: DaemonReport? = nil, width: Int? = nil, color: Bool = false
) -> String {
  var lines: [String] = []
  if !workers.isEmpty {
    lines += workerTable(workers).lines(width: width, color: color)
  }
  lines += wrapped(totalsLine(workers), to: width)
  if let daemon { lines.append(pressureLine(daemon, color: color)) }
  return lines.joined(separator: "\n") + "\n"
}

func workerTable(_ workers: [WorkerReport]) -> Table {
  var table = Table(columns: [
    .init(title: "NAME", least: 12), .init(title: "STATE"),
    .init(title: "BAND", alignsRight: true), .init(title: "FOOTPRINT", alignsRight: true),
    .init(title: "IMAGE", alignsRight: true),
    .init(title: "PID", alignsRight: true), .init(title: "FOR", alignsRight: true),
    .init(title: "REASON"),
  ])
  table.rows = workers.map(processRow)
  // Hardly anybody has any.
  guard workers.contains(where: { $0.purgeable != nil }) else { return table }
  let place = 4
  table.columns.insert(.init(title: "PURGEABLE", alignsRight: true), at: place)
  for (row, worker) in workers.enumerated() {
    table.rows[row].insert(.init(worker.purgeable.map(sizeText) ?? "-"), at: place)
  }
  return table
}

private func processRow(_ worker: WorkerReport) -> [Table.Cell] {
  [
    .init(escaped(worker.name)), .init(escaped(worker.state), .ofState(worker.state)),
    .init("\(worker.band)"), .init(sizeText(worker.footprint)),
    .init(worker.imageSize.map(sizeText) ?? "-"), .init(worker.pid.map { "\($0)" } ?? "-"),
    .init(durationText(worker.secondsInState)), .init(escaped(worker.reason)),
  ]
}

/// `3 workers: 1 foreground, 2 hibernated; footprint 64.2 MB, images 6.1 MB`.
func totalsLine(_ workers: [WorkerReport]) -> String {
  guard !workers.isEmpty else { return "no workers" }
  let footprint = workers.reduce(0) { $0 + $1.footprint }
  let images = workers.reduce(0) { $0 + ($1.imageSize ?? 0) }
  var line = "\(counted(workers.count, "worker")): \(stateCounts(workers))"
  line += "; footprint \(sizeText(footprint))"
  if images > 0 { line += ", images \(sizeText(images))" }
  return line
}

func stateCounts(_ workers: [WorkerReport]) -> String {
  let counts = Dictionary(grouping: workers, by: \.state).mapValues(\.count)
  // In the order of life; states that a newer daemon knows come last.
  let known = ["launching", "foreground", "background", "suspended", "hibernated", "terminated"]
  let order =
    known.filter { counts[$0] != nil } + counts.keys.filter { !known.contains($0) }.sorted()
  return order.map { "\(counts[$0] ?? 0) \(escaped($0))" }.joined(separator: ", ")
}

/// `pressure normal; 1.2 GB of 2.0 GB available (60 %); policy ios-5`.
func pressureLine(_ daemon: DaemonReport, color: Bool) -> String {
  let level = escaped(daemon.pressure)
  let shown = color ? Color.ofPressure(daemon.pressure).paint(level) : level
  let set = setPressureText(daemon).map { " (\($0))" } ?? ""
  var line = "pressure \(shown)\(set); \(memoryText(daemon)); policy \(escaped(daemon.policy))"
  if daemon.mode == "shadow" { line += " (shadow: nothing is done)" }
  return line
}

/// `set to critical for another 12.0 s`.
func setPressureText(_ daemon: DaemonReport) -> String? {
  daemon.pressureSet.map {
    "set to \(escaped($0)) for another \(durationText(daemon.pressureSetSeconds ?? 0))"
  }
}

/// `1.2 GB of 2.0 GB available (60 %)`.
func memoryText(_ daemon: DaemonReport) -> String {
  var text = "\(sizeText(daemon.available)) of \(sizeText(daemon.budget)) available"
  if daemon.budget > 0 {
    let share = Double(daemon.available) / Double(daemon.budget) * 100
    text += " (\(Int(share.rounded())) %)"
  }
  return text
}
