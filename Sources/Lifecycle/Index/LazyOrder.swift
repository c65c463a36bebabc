/// Slots in the order of their keys, the smallest first. A changed key is only recorded. The next
/// read sorts the changed keys, and merges them with the others in one pass. For an order of all
/// workers that is needed now and then.
struct LazyOrder<Key: Comparable & Sendable>: Sendable {
  private struct Entry {
    var key: Key
    var slot: Int32
  }

  /// Sorted. The entries whose slot is in `changed` are outdated.
  private var entries: [Entry] = []
  private var changed = SlotSet()
  private var keys: [Key?] = []

  /// Records a slot's key. `nil`: the slot isn't in the order any more.
  mutating func set(_ slot: Int, _ key: Key?) {
    while keys.count <= slot { keys.append(nil) }
    guard keys[slot] != key else { return }
    keys[slot] = key
    changed.insert(slot)
  }

  mutating func forEach(_ body: (Int) -> Void) {
    merge()
    for entry in entries { body(Int(entry.slot)) }
  }

  private mutating func merge() {
    guard !changed.isEmpty else { return }
    var moved = changed.members.compactMap { slot in
      keys[Int(slot)].map { Entry(key: $0, slot: slot) }
    }
    moved.sort { $0.key < $1.key }
    var merged: [Entry] = []
    merged.reserveCapacity(entries.count + moved.count)
    var next = 0
    for entry in entries where !changed.contains(Int(entry.slot)) {
      while next < moved.count, moved[next].key < entry.key {
        merged.append(moved[next])
        next += 1
      }
      merged.append(entry)
    }
    merged += moved[next...]
    entries = merged
    changed.removeAll()
  }
}
