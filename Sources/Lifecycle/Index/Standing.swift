import Policy

/// What the order of termination and a jetsam report need of a live worker. It is small, so that a
/// report on ten thousand workers doesn't read their whole records.
struct Standing: Sendable {
  let worker: WorkerID
  let state: WorkerState
  let band: Int
  let footprint: ByteCount
  let peakFootprint: ByteCount
  let lastUsed: Instant
  let launchAskedAt: Instant
  let protection: Protection?
  let key: OrderKey
  /// When time alone changes the band or the key. `nil`: it doesn't.
  let until: Instant?

  /// The standing of a worker. A function and not an initializer: an initializer would copy the
  /// record.
  static func of(
    _ worker: WorkerRecord, name: Int, by criteria: [TerminationRules.Criterion], at now: Instant
  ) -> Standing {
    var changes = EarliestDeadline(after: now)
    changes.consider(worker.bandChangesAt(now))
    if criteria.contains(.regret) { changes.consider(worker.regretChangesAt(now)) }
    if worker.isUsedNow(now), worker.state != .foreground {
      changes.consider(now + .nanoseconds(1))
    }
    return Standing(
      worker: worker.id, state: worker.state, band: worker.band(at: now),
      footprint: worker.footprint, peakFootprint: worker.run.peakFootprint,
      lastUsed: worker.lastUsed, launchAskedAt: worker.run.launchAskedAt,
      protection: worker.protection,
      key: OrderKey(name: name, criteria) { worker.lastingRank(by: $0, at: now) },
      until: changes.instant)
  }

  func entry(at now: Instant) -> JetsamReport.Entry {
    JetsamReport.Entry(
      worker: worker, state: state, band: band, footprint: footprint,
      peakFootprint: peakFootprint, sinceUse: state == .foreground ? .zero : now - lastUsed,
      age: now - launchAskedAt, protection: protection)
  }
}

extension WorkerRecord {
  fileprivate func isUsedNow(_ now: Instant) -> Bool { state == .foreground || lastUsed >= now }

  /// The worker's `rank`, but with the same value at any time until `Standing.until`, so that ranks
  /// of different times can be compared. A worker that is used now is the latest, whatever the time
  /// is.
  fileprivate func lastingRank(
    by criterion: TerminationRules.Criterion, at now: Instant
  ) -> Int64 {
    if criterion == .recency, isUsedNow(now) { return .max }
    return rank(by: criterion, at: now)
  }
}
