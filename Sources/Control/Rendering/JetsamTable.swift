/// `dormouse jetsam`: the low memory log. As on the iPhone, it lists every worker as it was when
/// memory ran out, in the order of termination, names the largest, and marks the victims.
public func renderJetsam(
  _ record: JetsamRecord, width: Int? = nil, color: Bool = false
) -> String {
  var block = StatusBlock(title: "low memory report \(escaped(record.id))")
  let level = escaped(record.level)
  let victims = record.workers.filter { $0.victimBecause != nil }
  block.add("time", escaped(record.time))
  block.add("pressure", color ? Color.ofPressure(record.level).paint(level) : level)
  block.add("why", escaped(record.why))
  block.add(
    "available",
    "\(sizeText(record.availableBefore)) before, \(sizeText(record.availableAfter)) after, "
      + "of \(sizeText(record.budget))")
  block.add("largest", record.largest.map(escaped))
  block.add("terminated", "\(victims.count) of \(counted(record.workers.count, "worker"))")
  block.add("policy", escaped(record.policy))

  var table = Table(columns: [
    .init(title: "NAME"), .init(title: "STATE"), .init(title: "BAND", alignsRight: true),
    .init(title: "FOOTPRINT", alignsRight: true), .init(title: "PEAK", alignsRight: true),
    .init(title: "UNUSED FOR", alignsRight: true), .init(title: ""),
  ])
  table.rows = record.workers.map(jetsamRow)
  return block.text + "\n" + table.lines(width: width, color: color).joined(separator: "\n") + "\n"
}

private func jetsamRow(_ entry: JetsamRecord.Entry) -> [Table.Cell] {
  var note = ""
  if let because = entry.victimBecause {
    note = "(jettisoned) \(escaped(because))"
    if let gaveBack = entry.gaveBack { note += "; gave back \(sizeText(gaveBack))" }
  }
  let isVictim = entry.victimBecause != nil
  return [
    .init(escaped(entry.name), isVictim ? .red : nil),
    .init(escaped(entry.state), .ofState(entry.state)), .init("\(entry.band)"),
    .init(sizeText(entry.footprint)), .init(sizeText(entry.peakFootprint)),
    .init(durationText(entry.secondsSinceUse)), .init(note, isVictim ? .red : nil),
  ]
}
