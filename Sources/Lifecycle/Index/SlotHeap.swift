/// A key for each slot, the smallest first. It is a binary heap in which each slot knows its
/// position, so that a changed key leaves no outdated entry behind: a worker's next deadline moves
/// with every sign of life.
struct SlotHeap<Key: Comparable & Sendable>: Sendable {
  fileprivate struct Entry {
    var key: Key
    var slot: Int32
  }

  fileprivate var entries: [Entry] = []
  /// The position in `entries` of each slot, or −1.
  private var positions: [Int32] = []

  /// The smallest key, and its slot.
  var first: (key: Key, slot: Int)? { entries.first.map { ($0.key, Int($0.slot)) } }

  func key(of slot: Int) -> Key? {
    guard slot < positions.count, positions[slot] >= 0 else { return nil }
    return entries[Int(positions[slot])].key
  }

  /// Sets a slot's key. `nil`: the slot isn't in the heap any more.
  mutating func set(_ slot: Int, _ key: Key?) {
    while positions.count <= slot { positions.append(-1) }
    let position = Int(positions[slot])
    switch key {
    case nil where position < 0: break
    case nil: remove(at: position)
    case let key? where position < 0:
      entries.append(Entry(key: key, slot: Int32(slot)))
      positions[slot] = Int32(entries.count - 1)
      rise(from: entries.count - 1)
    case let key?:
      let before = entries[position].key
      guard key != before else { return }
      entries[position].key = key
      if key < before { rise(from: position) } else { sink(from: position) }
    }
  }

  private mutating func remove(at position: Int) {
    positions[Int(entries[position].slot)] = -1
    let last = entries.removeLast()
    guard position < entries.count else { return }
    let before = entries[position].key
    entries[position] = last
    positions[Int(last.slot)] = Int32(position)
    if last.key < before { rise(from: position) } else { sink(from: position) }
  }

  private mutating func rise(from start: Int) {
    var position = start
    while position > 0, entries[position].key < entries[(position - 1) / 2].key {
      exchange(position, (position - 1) / 2)
      position = (position - 1) / 2
    }
  }

  private mutating func sink(from start: Int) {
    var position = start
    while true {
      let left = 2 * position + 1
      guard left < entries.count else { return }
      let right = left + 1
      let child = right < entries.count && entries[right].key < entries[left].key ? right : left
      guard entries[child].key < entries[position].key else { return }
      exchange(position, child)
      position = child
    }
  }

  private mutating func exchange(_ one: Int, _ other: Int) {
    entries.swapAt(one, other)
    positions[Int(entries[one].slot)] = Int32(one)
    positions[Int(entries[other].slot)] = Int32(other)
  }
}

extension SlotHeap {
  /// The slots from the smallest key on. Each costs a logarithm of the number that was popped
  /// before it, whatever the size of the heap.
  var ascending: Walk { Walk(entries) }

  struct Walk {
    private let entries: [Entry]
    /// Positions whose parents were popped: the next one is among them. The frontier uses positions
    /// as slots.
    private var frontier = SlotHeap()

    fileprivate init(_ entries: [Entry]) {
      self.entries = entries
      reach(0)
    }

    /// The next slot.
    var first: Int? { frontier.first.map { Int(entries[$0.slot].slot) } }

    mutating func popFirst() -> Int? {
      guard let position = frontier.first?.slot else { return nil }
      frontier.set(position, nil)
      reach(2 * position + 1)
      reach(2 * position + 2)
      return Int(entries[position].slot)
    }

    private mutating func reach(_ position: Int) {
      if position < entries.count { frontier.set(position, entries[position].key) }
    }
  }
}
