import Policy

/// What the orders ask of a worker most often, derived from its record: choosing a victim is a pass
/// over all candidates, and looks at these few bytes of each instead of at all that is known of it.
struct RankKey: Sendable {
  var band: Int
  var footprint: ByteCount
  var lastUsed: Instant
  var isInFront: Bool
  /// From then on time alone has changed the band.
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
  /// The derived one where it still holds, or else a new one.
  func standing(_ index: Int, at now: Instant) -> RankKey {
    if let standing = derivedStanding(index), standing.holds(at: now) { return standing }
    return RankKey(self[index], at: now)
  }

  /// Before a pass over many: a band that has run out would be worked out in each pass anew.
  mutating func renewStandings(_ indices: [Int], at now: Instant) {
    for index in indices where derivedStanding(index)?.holds(at: now) == false {
      setStanding(index, RankKey(self[index], at: now))
    }
  }
}
