/// The output of `dormouse ps`: a line for each worker, then the totals and the pressure.
///
/// - Parameters:
///   - cpu: processor use in percent, by worker; nil for no such column.
///   - width: the terminal's width in columns; nil for no limit.
///   - wide: whether columns are shown that are seldom needed.
public func renderProcessTable(
  _ workers: [WorkerReport], daemon: DaemonReport? = nil, cpu: [String: Double]? = nil,
  width: Int? = nil, wide: Bool = false, color: Bool = false, clock: ReaderClock = ReaderClock()
) -> String {
  var lines: [String] = []
  if !workers.isEmpty {
    lines += workerTable(workers, cpu: cpu, width: width, wide: wide, clock: clock)
      .lines(width: width, color: color, wrapsLast: true)
  }
  if workers.contains(where: \.hasStoppedWork) {
    lines += wrapped(ShownState.stoppedWorkLegend, to: width)
  }
  lines += wrapped(totalsLine(workers), to: width)
  if let daemon {
    lines += savingsLines(daemon.savings).prefix(1).flatMap { wrapped($0, to: width) }
    lines += pressureLines(daemon, width: width, color: color)
  }
  return lines.joined(separator: "\n") + "\n"
}

/// The table of workers. In a terminal that is too narrow for the reasons, columns that are needed
/// less are left out.
func workerTable(
  _ workers: [WorkerReport], cpu: [String: Double]? = nil, width: Int?, wide: Bool = false,
  clock: ReaderClock = ReaderClock()
) -> Table {
  var table = wholeWorkerTable(workers, cpu: cpu, clock)
  table.remove("PROT")
  if !wide { table.remove("BAND") }
  if let width {
    table.leaveOut(
      ["PID", "IMAGE", "PURGEABLE", "SAVED", "SWAPPED", "HOST", "PROJECT"], of: width,
      untilLastHas: 30
    )
  }
  return table
}

/// The table of workers with all columns, but for those that no worker has a value for.
func wholeWorkerTable(
  _ workers: [WorkerReport], cpu: [String: Double]?, _ clock: ReaderClock = ReaderClock()
) -> Table {
  var table = Table(
    columns: [
      .init(title: "NAME", minWidth: 12), "STATE", "PROT", .number("BAND"), .number("FOOTPRINT"),
      .number("CPU"), .number("SWAPPED"), .number("SAVED"), .number("PURGEABLE"),
      .number("IMAGE"), .number("PID"), .number("FOR"), "HOST", "PROJECT", "REASON",
    ], rows: workers.map { processRow($0, cpu: cpu?[$0.name], clock) })
  if cpu == nil { table.remove("CPU") }
  for title in ["PROT", "SWAPPED", "SAVED", "PURGEABLE", "HOST", "PROJECT"] {
    table.removeIfEmpty(title)
  }
  return table
}

private func processRow(
  _ worker: WorkerReport, cpu: Double?, _ clock: ReaderClock
) -> [Table.Cell] {
  let state = ShownState(of: worker)
  let swapped = worker.trim.flatMap { $0.swapped > 0 ? sizeText($0.swapped) : nil }
  let project = worker.directory.map { escaped(String($0.split(separator: "/").last ?? "/")) }
  let texts: [String?] = [
    worker.protection.map { _ in "yes" }, "\(worker.band)", sizeText(worker.footprint),
    cpu.map { "\(decimal($0)) %" }, swapped, worker.saved.map(sizeText),
    worker.purgeable.map(sizeText), worker.imageSize.map(sizeText), worker.pid.map { "\($0)" },
    durationText(worker.secondsInState), worker.host.map(escaped), project,
    reasonText(worker, clock),
  ]
  return [.init(escaped(worker.name)), .init(state.text, state.color)]
    + texts.map { .init($0 ?? Table.noValue) }
}

private func reasonText(_ worker: WorkerReport, _ clock: ReaderClock) -> String {
  let changed =
    worker.changedSinceLaunch == nil || worker.state == "terminated"
    ? nil : "configuration changed: restart to apply"
  // The coming termination is first: a narrow column cuts the end.
  if let seconds = worker.noticeSeconds {
    let time = durationText(seconds)
    return "will be terminated in \(time); `dormouse protect \(escaped(worker.name))` keeps it"
  }
  let asleep = worker.secondsAsleep.map { "asleep since \(clock.text(secondsAgo: $0))" }
  let parts = [
    escaped(worker.reason.text), stoppedWorkText(worker), asleep, wokenText(worker, clock),
    protectedText(worker), changed,
  ]
  return parts.compactMap { $0 }.joined(separator: "; ")
}

private func stoppedWorkText(_ worker: WorkerReport) -> String? {
  if worker.stopsWriting == true { return "its regular writing is stopped" }
  return worker.stoppedTimerSeconds.map { "its own timer (\(durationText($0))) is stopped" }
}

private func protectedText(_ worker: WorkerReport) -> String? {
  guard worker.protection != nil else { return nil }
  return worker.protectedSeconds.map { "protected for \(durationText($0)) more" } ?? "protected"
}

/// The last wake, while the worker runs, and if the reason of its state doesn't report it already.
private func wokenText(_ worker: WorkerReport, _ clock: ReaderClock) -> String? {
  guard let wake = worker.lastWake, wake.text != worker.reason.text,
    ["foreground", "background"].contains(worker.state)
  else { return nil }
  return "\(escaped(wake.text)) at \(clock.text(secondsAgo: wake.secondsAgo))"
}

/// A line such as `3 workers: 1 foreground, 2 hibernated; footprint 64.2 MB, saved now 511 MB of
/// 575 MB (89 %), images 6.1 MB`.
///
/// - Parameter showsSaved: false if another line shows the savings.
func totalsLine(_ workers: [WorkerReport], showsSaved: Bool = true) -> String {
  guard !workers.isEmpty else { return "no workers" }
  let footprint = workers.reduce(0) { $0 + $1.footprint }
  let images = workers.reduce(0) { $0 + ($1.imageSize ?? 0) }
  let swapped = workers.reduce(0) { $0 + ($1.trim?.swapped ?? 0) }
  var line = "\(counted(workers.count, "worker")): \(stateCounts(workers))"
  line += "; footprint \(sizeText(footprint))"
  if swapped > 0 { line += " (\(sizeText(swapped)) swapped)" }
  if showsSaved, workers.contains(where: { $0.saved ?? 0 > 0 }), let saved = savedNowText(workers) {
    line += ", saved now \(saved)"
  }
  if images > 0 { line += ", images \(sizeText(images))" }
  return line
}

func stateCounts(_ workers: [WorkerReport]) -> String {
  let counts = Dictionary(grouping: workers.map { ShownState(of: $0).kind }, by: \.self)
    .mapValues(\.count)
  // The states are in the order of a worker's life. Workers without processes, and states of newer
  // daemons, are last.
  let runningStates = ["launching", "foreground", "background", "suspended", "hibernated"]
  let order =
    runningStates.filter { counts[$0] != nil }
    + counts.keys.filter { !runningStates.contains($0) }.sorted()
  return order.map { "\(counts[$0] ?? 0) \($0)" }.joined(separator: ", ")
}

/// The pressure line, wrapped at the terminal's width.
func pressureLines(_ daemon: DaemonReport, width: Int?, color: Bool) -> [String] {
  wrapped(pressureLine(daemon, color: color), to: width)
}

/// A line such as `pressure normal; 1.2 GB of 2.0 GB available (60 %); policy ios-5`.
func pressureLine(_ daemon: DaemonReport, color: Bool) -> String {
  let shown = Color.ofPressure(daemon.pressure).paint(escaped(daemon.pressure), if: color)
  let set = setPressureText(daemon).map { " (\($0))" } ?? ""
  var line = "pressure \(shown)\(set); \(memoryText(daemon)); policy \(escaped(daemon.policy))"
  if daemon.mode == "shadow" { line += " (shadow mode: decisions are logged, not applied)" }
  return line
}

/// A text such as `set to critical for another 12.0 s`.
func setPressureText(_ daemon: DaemonReport) -> String? {
  daemon.pressureSet.map {
    "set to \(escaped($0)) for another \(durationText(daemon.pressureSetSeconds ?? 0))"
  }
}

/// A text such as `1.2 GB of 2.0 GB available (60 %)`.
func memoryText(_ daemon: DaemonReport) -> String {
  var text = "\(sizeText(daemon.available)) of \(sizeText(daemon.budget)) available"
  if daemon.budget > 0 {
    let share = Double(daemon.available) / Double(daemon.budget) * 100
    text += " (\(Int(share.rounded())) %)"
  }
  return text
}
