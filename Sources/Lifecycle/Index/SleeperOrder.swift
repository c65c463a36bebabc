import Policy

/// The order of hibernation of the sleepers that the ladder may examine. A search ranks again what
/// has changed. So it costs nothing for sleepers that haven't changed since the last one, even
/// while many workers are hibernated one after the other.
struct SleeperOrder: Sendable {
  var outdated = OutdatedSlots()
  private var order = SlotHeap<OrderKey>()

  /// The ranked slot that is to be hibernated first.
  var first: Int? { order.first?.slot }

  mutating func remove(_ slot: Int) {
    outdated.remove(slot)
    order.set(slot, nil)
  }

  mutating func set(_ slot: Int, _ key: OrderKey, until: Instant?) {
    outdated.set(slot, until: until)
    order.set(slot, key)
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
