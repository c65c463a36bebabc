import Policy

/// The order of hibernation of the sleepers that the ladder may examine. A change is only recorded,
/// as in `TerminationIndex`; the next search ranks again what has changed. So a search costs
/// nothing for sleepers that haven't changed since the last one, even while many workers are
/// hibernated one after the other.
struct SleeperOrder: Sendable {
  private var outdated = SlotSet()
  private var isAllOutdated = false
  /// The criteria by which the slots are ranked.
  private var criteria: [TerminationRules.Criterion] = []
  private var rate = ResumeRate()
  /// When time alone changes a rank.
  private var expiries = SlotHeap<Instant>()
  private var order = SlotHeap<OrderKey>()

  /// The ranked slot that is to be hibernated first.
  var first: Int? { order.first?.slot }

  mutating func markOutdated(_ slot: Int) { outdated.insert(slot) }

  /// Marks every slot: the order of names has changed, and ties depend on it.
  mutating func markAllOutdated() { isAllOutdated = true }

  mutating func remove(_ slot: Int) {
    outdated.remove(slot)
    expiries.set(slot, nil)
    order.set(slot, nil)
  }

  mutating func set(_ slot: Int, _ key: OrderKey, until: Instant?) {
    expiries.set(slot, until)
    order.set(slot, key)
  }

  /// Returns the slots to rank again. They count as ranked from then on.
  ///
  /// - Parameters:
  ///   - all: the slots that are ranked or marked.
  ///   - rate: the resume rate of all workers.
  mutating func drainOutdated(
    of all: [Int32], by criteria: [TerminationRules.Criterion], _ rate: ResumeRate,
    at now: Instant
  ) -> [Int32] {
    if isAllOutdated || criteria != self.criteria || rate != self.rate {
      isAllOutdated = false
      (self.criteria, self.rate) = (criteria, rate)
      for slot in all { outdated.insert(Int(slot)) }
    }
    while let (at, slot) = expiries.first, at <= now {
      expiries.set(slot, nil)
      outdated.insert(slot)
    }
    defer { outdated.removeAll() }
    return outdated.members
  }
}

extension Engine {
  /// Brings the order up to date. Called after `refresh`, before the order of the sleepers is used.
  mutating func rankSleepers() {
    let criteria = policy.hibernate.order.withoutRepetition
    // Only these two criteria depend on what a resume costs.
    let dependsOnRate = criteria.contains(.regret) || criteria.contains(.relaunchCost)
    let rate = dependsOnRate ? resumeRate : ResumeRate()
    for slot in workers.sleepers.drainOutdated(by: criteria, rate, at: now) {
      let index = workers.index(ofSlot: Int(slot))
      workers.sleepers.order.set(
        Int(slot), sleeperKey(index, criteria), until: sleeperRankChangesAt(index, criteria))
    }
  }

  /// The sleeper's position by `hibernate.order`, ties by name.
  func sleeperKey(_ index: Int, _ criteria: [TerminationRules.Criterion]) -> OrderKey {
    OrderKey(name: index, criteria) { hibernationRank(of: workers[index], by: $0) }
  }

  private func sleeperRankChangesAt(
    _ index: Int, _ criteria: [TerminationRules.Criterion]
  ) -> Instant? {
    var changes = EarliestDeadline(after: now)
    if criteria.contains(.band) { changes.consider(workers[index].bandChangesAt(now)) }
    if criteria.contains(.regret) { changes.consider(workers[index].regretChangesAt(now)) }
    return changes.instant
  }
}
