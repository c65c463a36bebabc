import Policy

// A worker's footprint at each suspension, in one run of its program. By then it has had its chance
// to free memory (the message that it is in the background), and nothing is under way. So the
// footprints can be compared.

/// The footprint of a worker that has just been suspended.
struct SuspendedFootprint: Hashable, Sendable {
  /// The number of the suspension in this run, from 1.
  var number: Int
  var at: Instant
  var footprint: ByteCount
}

/// The footprints at suspensions by which a leak is suspected. Their number is bounded.
struct FootprintGrowth: Codable, Hashable, Sendable {
  /// The last suspensions.
  private(set) var recent: [SuspendedFootprint] = []
  /// The smallest footprint of each `stride` suspensions, over the whole run. A slow leak shows
  /// only here.
  private(set) var whole: [SuspendedFootprint] = []
  private var stride = 1
  private var smallest: SuspendedFootprint?
  private var openCount = 0
  private var count = 0
  /// The largest footprint that isn't in `recent` any more. A worker that grows back to it has no
  /// new memory.
  private(set) var highWater = ByteCount.zero
  /// The footprint after the last memory warning of this run. `nil`: there was none.
  var leftByWarning: ByteCount?
  /// Whether the worker was hibernated since the last footprint. Pages may still be in the image
  /// then, and aren't in its footprint.
  var mayLackPages = false
  /// The suspicion at the latest footprint. It stays while the footprints rise, and is withdrawn
  /// when they don't.
  private(set) var suspicion: LeakSuspicion?
  private(set) var isReported = false

  /// The largest number of footprints in `recent`, and in `whole`.
  static let limit = 24

  /// Adds a footprint and judges again.
  ///
  /// - Returns: a suspicion that wasn't reported in this run.
  mutating func add(_ footprint: ByteCount, at now: Instant) -> LeakSuspicion? {
    count += 1
    defer { mayLackPages = false }
    if mayLackPages, let last = recent.last, footprint < last.footprint { return nil }
    let sample = SuspendedFootprint(number: count, at: now, footprint: footprint)
    if recent.count == Self.limit { highWater = max(highWater, recent.removeFirst().footprint) }
    recent.append(sample)
    addToWhole(sample)
    suspicion = judgement
    suspicion?.leftByWarning = leftByWarning
    guard let suspicion, !isReported else { return nil }
    isReported = true
    return suspicion
  }

  private mutating func addToWhole(_ sample: SuspendedFootprint) {
    if smallest.map({ sample.footprint < $0.footprint }) ?? true { smallest = sample }
    openCount += 1
    guard openCount == stride, let closed = smallest else { return }
    (smallest, openCount) = (nil, 0)
    if whole.count == Self.limit {
      whole = Swift.stride(from: 0, to: whole.count - 1, by: 2).map { index in
        let (left, right) = (whole[index], whole[index + 1])
        return right.footprint < left.footprint ? right : left
      }
      stride *= 2
      // It is the first half of a span that is twice as long now.
      (smallest, openCount) = (closed, stride / 2)
      return
    }
    whole.append(closed)
  }

  private var judgement: LeakSuspicion? {
    let isSuspected = suspicion != nil
    if let first = whole.first, let last = recent.last,
      let long = LeakSuspicion(whole, isSuspected: isSuspected)?.extended(from: first, to: last)
    {
      return long
    }
    // Memory that was freed and is used again isn't a leak, however it rises.
    let newest = recent.suffix(Self.limit / 4).map(\.footprint).min()
    guard let newest, newest > highWater else { return nil }
    return LeakSuspicion(recent, isSuspected: isSuspected)
  }

  mutating func move(by shift: Duration) {
    for index in recent.indices { recent[index].at = recent[index].at + shift }
    for index in whole.indices { whole[index].at = whole[index].at + shift }
    if let open = smallest { smallest?.at = open.at + shift }
  }
}

/// Coded as three numbers: a file and a checkpoint have up to 48 of them for each worker.
extension SuspendedFootprint: Codable {
  init(from decoder: any Decoder) throws {
    var values = try decoder.unkeyedContainer()
    number = try values.decode(Int.self)
    at = Instant(nanoseconds: try values.decode(Int64.self))
    footprint = ByteCount(try values.decode(Int64.self))
  }

  func encode(to encoder: any Encoder) throws {
    var values = encoder.unkeyedContainer()
    try values.encode(number)
    try values.encode(at.nanoseconds)
    try values.encode(footprint.bytes)
  }
}

extension Engine {
  /// Records the first footprint since the worker was suspended. Memory that it offers to be freed
  /// is no leak.
  mutating func recordGrowth(_ index: Int, _ footprint: ByteCount) {
    var growth = workers[index].run.growth ?? FootprintGrowth()
    let suspicion = growth.add(max(.zero, footprint - workers[index].run.purgeable), at: now)
    workers[index].run.growth = growth
    if let suspicion { emit(.leakSuspected(workers[index].id, suspicion)) }
  }

  mutating func recordLeft(byWarning footprint: ByteCount, _ index: Int) {
    var growth = workers[index].run.growth ?? FootprintGrowth()
    growth.leftByWarning = footprint
    workers[index].run.growth = growth
  }
}
