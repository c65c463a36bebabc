/// The output of `dormouse jetsam`: a jetsam report. As on the iPhone, it lists every worker as it
/// was when memory was short, in the order of termination. It names the largest worker, and marks
/// those that were terminated.
public func renderJetsam(
  _ record: JetsamRecord, width: Int? = nil, color: Bool = false
) -> String {
  var block = StatusBlock(title: "jetsam report \(escaped(record.id))")
  let victims = record.workers.filter { $0.victimBecause != nil }
  block.add("time", escaped(record.time))
  block.add("pressure", Color.ofPressure(record.level).paint(escaped(record.level), if: color))
  block.add("why", escaped(record.why.text))
  block.add(
    "available",
    "\(sizeText(record.availableBefore)) before, \(sizeText(record.availableAfter)) after, "
      + "of \(sizeText(record.budget))")
  block.add("host", record.host.map(hostText))
  block.add("stalled", record.host.flatMap(stallText))
  block.add("largest", record.largest.map { "\(escaped($0)), marked *" })
  for (index, line) in processLines(record).enumerated() {
    block.add(index == 0 ? "processes" : "", line)
  }
  block.add("terminated", "\(victims.count) of \(counted(record.workers.count, "worker"))")
  block.add("policy", escaped(record.policy))

  var table = Table(columns: [
    .init(title: "NAME", minWidth: 12), "STATE", .number("BAND"), .number("FOOTPRINT"),
    .number("PEAK"), .number("AGE"), .number("UNUSED FOR"), "",
  ])
  table.rows = record.workers.map { jetsamRow($0, mark: markedReason(of: $0), in: record) }
  var reasons: [String] = []
  // The reasons are the most important part of the report. If they are too long for the table, they
  // follow below it.
  if let width, !table.fits(width) {
    table.rows = record.workers.map {
      jetsamRow($0, mark: marker(of: $0), in: record)
    }
    let longest = displayWidth("(terminated)")
    table.leaveOut(["AGE", "PEAK", "BAND"], of: width, untilLastHas: longest)
    reasons = record.workers.filter { marker(of: $0) != nil }.flatMap { entry in
      wrapped("\(escaped(entry.name)): \(reason(for: entry) ?? "")", to: width, indent: 2)
    }
  }
  let lines = table.lines(width: width, color: color) + (reasons.isEmpty ? [] : [""] + reasons)
  return block.text(width: width) + "\n" + lines.joined(separator: "\n") + "\n"
}

/// The mark of a worker that was terminated, or that wasn't because it is protected.
private func marker(of entry: JetsamRecord.Entry) -> String? {
  if entry.victimBecause != nil { return "(terminated)" }
  return entry.protection == nil ? nil : "(protected)"
}

/// The largest processes of the machine, whether they belong to workers or not.
private func processLines(_ record: JetsamRecord) -> [String] {
  guard let processes = record.largestProcesses else { return [] }
  let lines = processes.list.map { process in
    let owner = process.worker.map { ", of worker \(escaped($0))" } ?? ""
    return "\(sizeText(process.resident)) \(escaped(process.name)), pid \(process.pid)\(owner)"
  }
  return processes.isComplete
    ? lines : lines + ["(there was no time to read all processes of the machine)"]
}

private func markedReason(of entry: JetsamRecord.Entry) -> String? {
  guard let marker = marker(of: entry), let reason = reason(for: entry) else { return nil }
  return "\(marker) \(reason)"
}

private func reason(for entry: JetsamRecord.Entry) -> String? {
  guard let because = entry.victimBecause else { return entry.protection.map { escaped($0.text) } }
  return escaped(because.text) + (entry.gaveBack.map { "; freed \(sizeText($0))" } ?? "")
}

private func jetsamRow(
  _ entry: JetsamRecord.Entry, mark text: String?, in record: JetsamRecord
) -> [Table.Cell] {
  let isVictim = entry.victimBecause != nil
  // The mark is that of a jetsam report of the iPhone. The largest worker is named above.
  let mark = entry.name == record.largest ? " *" : ""
  return [
    .init(escaped(entry.name) + mark, isVictim ? .red : nil),
    .init(escaped(entry.state), .ofState(entry.state)), .init("\(entry.band)"),
    .init(sizeText(entry.footprint)),
    .init(sizeText(entry.peakFootprint)), .init(entry.secondsOfAge.map(durationText) ?? "-"),
    .init(durationText(entry.secondsSinceUse)), .init(text ?? "", isVictim ? .red : nil),
  ]
}

private func hostText(_ host: JetsamRecord.Host) -> String {
  "\(sizeText(host.free)) free, \(sizeText(host.reclaimable)) reclaimable, "
    + "\(sizeText(host.wired)) wired, \(sizeText(host.workers)) in workers, "
    + "of \(sizeText(host.total))"
}

private func stallText(_ host: JetsamRecord.Host) -> String? {
  guard let some = host.someStall, let full = host.fullStall else { return nil }
  return "some tasks waited for memory \(percentText(some)) of the time, all tasks "
    + percentText(full)
}
