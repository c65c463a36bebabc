import Policy

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
  private var places: [Int32] = []

  /// The smallest key, and its slot.
  var first: (key: Key, slot: Int)? { entries.first.map { ($0.key, Int($0.slot)) } }

  func key(of slot: Int) -> Key? {
    guard slot < places.count, places[slot] >= 0 else { return nil }
    return entries[Int(places[slot])].key
  }

  /// Sets a slot's key. `nil`: the slot isn't in the heap any more.
  mutating func set(_ slot: Int, _ key: Key?) {
    while places.count <= slot { places.append(-1) }
    let place = Int(places[slot])
    switch key {
    case nil where place < 0: break
    case nil: remove(at: place)
    case let key? where place < 0:
      entries.append(Entry(key: key, slot: Int32(slot)))
      places[slot] = Int32(entries.count - 1)
      rise(from: entries.count - 1)
    case let key?:
      let before = entries[place].key
      guard key != before else { return }
      entries[place].key = key
      if key < before { rise(from: place) } else { sink(from: place) }
    }
  }

  private mutating func remove(at place: Int) {
    places[Int(entries[place].slot)] = -1
    let last = entries.removeLast()
    guard place < entries.count else { return }
    let before = entries[place].key
    entries[place] = last
    places[Int(last.slot)] = Int32(place)
    if last.key < before { rise(from: place) } else { sink(from: place) }
  }

  private mutating func rise(from start: Int) {
    var place = start
    while place > 0, entries[place].key < entries[(place - 1) / 2].key {
      exchange(place, (place - 1) / 2)
      place = (place - 1) / 2
    }
  }

  private mutating func sink(from start: Int) {
    var place = start
    while true {
      let left = 2 * place + 1
      guard left < entries.count else { return }
      let right = left + 1
      let child = right < entries.count && entries[right].key < entries[left].key ? right : left
      guard entries[child].key < entries[place].key else { return }
      exchange(place, child)
      place = child
    }
  }

  private mutating func exchange(_ one: Int, _ other: Int) {
    entries.swapAt(one, other)
    places[Int(entries[one].slot)] = Int32(one)
    places[Int(entries[other].slot)] = Int32(other)
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
      guard let place = frontier.first?.slot else { return nil }
      frontier.set(place, nil)
      reach(2 * place + 1)
      reach(2 * place + 2)
      return Int(entries[place].slot)
    }

    private mutating func reach(_ place: Int) {
      if place < entries.count { frontier.set(place, entries[place].key) }
    }
  }
}
