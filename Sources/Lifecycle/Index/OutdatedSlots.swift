import Policy

/// The slots that an order has to rank again: their workers have changed, or time changes their
/// ranks. A change is only recorded here, and the next use of the order ranks them again.
struct OutdatedSlots: Sendable {
  private var slots = SlotSet()
  private var areAll = true
  /// The criteria by which the slots are ranked.
  private var criteria: [TerminationRules.Criterion] = []
  /// When time alone changes a rank.
  private var expiries = SlotHeap<Instant>()

  mutating func insert(_ slot: Int) { slots.insert(slot) }

  /// Marks every slot: the order of names has changed, and ties depend on it.
  mutating func insertAll() { areAll = true }

  mutating func remove(_ slot: Int) {
    slots.remove(slot)
    expiries.set(slot, nil)
  }

  /// Records when time alone changes the slot's rank. `nil`: it doesn't.
  mutating func set(_ slot: Int, until: Instant?) { expiries.set(slot, until) }

  /// Returns the slots to rank again. They count as ranked from then on.
  ///
  /// - Parameter all: the slots that are ranked or marked.
  mutating func drain(
    of all: some Sequence<Int>, by criteria: [TerminationRules.Criterion], at now: Instant
  ) -> [Int32] {
    if areAll || criteria != self.criteria {
      areAll = false
      self.criteria = criteria
      for slot in all { slots.insert(slot) }
    }
    while let (at, slot) = expiries.first, at <= now {
      expiries.set(slot, nil)
      slots.insert(slot)
    }
    defer { slots.removeAll() }
    return slots.members
  }
}
