import JSONLines
import Lifecycle
import Policy

/// Events that come each second and rarely have a result: readings of memory, footprints, activity
/// and deadlines. One record holds many of them. It holds only differences, but exact ones:
///
///     {"t":T,"total":N,"s":[[0,8123400192],[1000100000,-4096],["web",210000,17825792],["web",99]]}
///
/// Each entry begins with the nanoseconds since the entry before it. There are four kinds: `[dt,
/// available]`, followed by `some` and `full` if they have changed, and by free swap if it has;
/// `[worker, dt, footprint]`; `[worker, dt]` for activity; `[dt]` for a deadline. Numbers of bytes
/// are differences from the last ones in the batch, at first from zero.
struct SampleBatch: Sendable {
  private var start = Instant.zero
  private var entries: [UInt8] = []
  private(set) var count = 0
  private var deltas = SampleDeltas()

  /// The maximum number of entries. A line stays short enough to read, and a lost one costs no more
  /// than a minute.
  static let maxEntries = 64

  /// Returns true for an event that a batch can hold if it had no directives.
  static func accepts(_ event: Event) -> Bool {
    switch event {
    case .memory, .footprint, .activity, .deadline: true
    default: false
    }
  }

  /// Returns false if the event needs a new batch.
  func hasRoom(for event: Event) -> Bool {
    if count == 0 { return true }
    if count >= Self.maxEntries { return false }
    if case .memory(let reading) = event { return deltas.total.map { $0 == reading.total } ?? true }
    return true
  }

  mutating func add(_ event: Event, at now: Instant) {
    if count == 0 {
      start = now
      deltas.last = now
    }
    let values: [JSON]
    switch event {
    case .memory(let reading): values = deltas.encode(reading, at: now)
    case .footprint(let worker, let footprint):
      values = deltas.encode(footprint, of: worker, at: now)
    case .activity(let worker):
      values = [.string(worker.name), .int(deltas.step(to: now))]
    case .deadline: values = [.int(deltas.step(to: now))]
    default: return
    }
    if count > 0 { entries.append(UInt8(ascii: ",")) }
    JSON.array(values).write(to: &entries)
    count += 1
  }

  /// Returns the whole record, and empties the batch. nil: the batch is empty.
  mutating func drainBytes() -> [UInt8]? {
    guard count > 0 else { return nil }
    defer { self = SampleBatch() }
    var fields = FieldWriter()
    fields.set("t", start)
    if let total = deltas.total { fields.set("total", total) }
    fields.set("s", JSON(Array("[".utf8) + entries + Array("]".utf8)) ?? .array([]))
    return SealedLine.seal(fields)
  }

  static func read(_ record: JSON) throws -> [(at: Instant, event: Event)] {
    let fields = FieldReader(record: record)
    var deltas = SampleDeltas()
    deltas.last = try fields.instant("t")
    deltas.total = try fields.optional("total", as: ByteCount.self)
    guard let entries = record["s"]?.elements else { throw JournalMismatch("`s` isn't a list") }
    return try entries.map { entry in
      guard let values = entry.elements, let event = deltas.decode(values) else {
        throw JournalMismatch("a sample has the wrong form")
      }
      return (deltas.last, event)
    }
  }
}

/// The values to which the differences refer.
struct SampleDeltas: Sendable {
  var last = Instant.zero
  var total: ByteCount?
  private var available: Int64 = 0
  private var stalls: (some: Double?, full: Double?) = (nil, nil)
  private var swapFree: Int64 = 0
  private var footprints: [WorkerID: Int64] = [:]

  mutating func step(to now: Instant) -> Int64 {
    defer { last = now }
    return now.nanoseconds &- last.nanoseconds
  }

  mutating func encode(_ reading: MemoryReading, at now: Instant) -> [JSON] {
    total = reading.total
    var values = [
      JSON.int(step(to: now)), .int(reading.available.bytes &- available),
    ]
    available = reading.available.bytes
    let swapMoved = reading.swapFree.bytes != swapFree
    if stalls != (reading.someStall, reading.fullStall) || swapMoved {
      stalls = (reading.someStall, reading.fullStall)
      values += [stalls.some, stalls.full].map { $0.map(JSON.double) ?? .null }
    }
    if swapMoved {
      swapFree = reading.swapFree.bytes
      values.append(.int(swapFree))
    }
    return values
  }

  mutating func encode(_ footprint: ByteCount, of worker: WorkerID, at now: Instant) -> [JSON] {
    let before = footprints.updateValue(footprint.bytes, forKey: worker) ?? 0
    return [.string(worker.name), .int(step(to: now)), .int(footprint.bytes &- before)]
  }

  mutating func decode(_ values: [JSON]) -> Event? {
    guard let first = values.first else { return nil }
    if let name = first.text {
      guard values.count > 1, let step = values[1].integer else { return nil }
      last = Instant(nanoseconds: last.nanoseconds &+ step)
      let worker = WorkerID(name)
      guard values.count > 2 else { return .activity(worker) }
      guard let change = values[2].integer else { return nil }
      let bytes = (footprints[worker] ?? 0) &+ change
      footprints[worker] = bytes
      return .footprint(worker, ByteCount(bytes))
    }
    if values.count == 1, let step = first.integer {
      last = Instant(nanoseconds: last.nanoseconds &+ step)
      return .deadline
    }
    guard let step = first.integer, values.count > 1, let change = values[1].integer,
      let total
    else { return nil }
    last = Instant(nanoseconds: last.nanoseconds &+ step)
    available = available &+ change
    // The value of a kind without a stall is no number, and is read as nil.
    if values.count > 3 { stalls = (try? stall(values[2]), try? stall(values[3])) }
    if values.count > 4, let free = values[4].integer { swapFree = free }
    return .memory(
      MemoryReading(
        total: total, available: ByteCount(available), someStall: stalls.some,
        fullStall: stalls.full, swapFree: ByteCount(swapFree)))
  }

  private func stall(_ value: JSON) throws -> Double { try value.decode(Double.self) }
}
