import Policy

/// The facts of a worker that the orders need most often, derived from its record: choosing a victim is
/// a pass over all candidates, and reads these few bytes of each instead of the whole record.
struct RankKey: Sendable {
  var band: Int
  var footprint: ByteCount
  var lastUsed: Instant
  var isInFront: Bool
  /// From this instant on, time alone has changed the band.
  private var until: Instant

  init(_ worker: WorkerRecord, at now: Instant) {
    band = worker.band(at: now)
    footprint = worker.footprint
    lastUsed = worker.lastUsed
    isInFront = worker.state == .foreground
    until = worker.bandChangesAt(now) ?? Instant(nanoseconds: .max)
  }

  func holds(at now: Instant) -> Bool { now < until }
}

extension WorkerTable {
  /// The derived one while it is valid, otherwise a new one.
  func standing(_ index: Int, at now: Instant) -> RankKey {
    if let standing = derivedStanding(index), standing.holds(at: now) { return standing }
    return RankKey(self[index], at: now)
  }

  /// Called before a pass over many workers: otherwise each pass would compute an expired band again.
  mutating func renewStandings(_ indices: [Int], at now: Instant) {
    for index in indices where derivedStanding(index)?.holds(at: now) == false {
      setStanding(index, RankKey(self[index], at: now))
    }
  }
}
