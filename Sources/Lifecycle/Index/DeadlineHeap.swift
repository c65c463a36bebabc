import Policy

/// The next instant of each worker, the earliest first: a binary heap in which each slot knows its
/// place, so that a deadline which moves (and idleness moves with every sign of life) leaves
/// nothing behind.
struct DeadlineHeap: Sendable {
  private struct Entry {
    var at: Instant
    var slot: Int32
  }

  private var entries: [Entry] = []
  /// By slot: its place in `entries`, or −1.
  private var places: [Int32] = []

  /// The earliest.
  var first: (at: Instant, slot: Int)? { entries.first.map { ($0.at, Int($0.slot)) } }

  func deadline(of slot: Int) -> Instant? {
    guard slot < places.count, places[slot] >= 0 else { return nil }
    return entries[Int(places[slot])].at
  }

  /// `nil`: time alone changes nothing for this worker.
  mutating func set(_ slot: Int, _ at: Instant?) {
    while places.count <= slot { places.append(-1) }
    let place = Int(places[slot])
    switch at {
    case nil where place < 0: break
    case nil: remove(at: place)
    case let at? where place < 0:
      entries.append(Entry(at: at, slot: Int32(slot)))
      places[slot] = Int32(entries.count - 1)
      rise(from: entries.count - 1)
    case let at?:
      let before = entries[place].at
      guard at != before else { return }
      entries[place].at = at
      if at < before { rise(from: place) } else { sink(from: place) }
    }
  }

  private mutating func remove(at place: Int) {
    places[Int(entries[place].slot)] = -1
    let last = entries.removeLast()
    guard place < entries.count else { return }
    let before = entries[place].at
    entries[place] = last
    places[Int(last.slot)] = Int32(place)
    if last.at < before { rise(from: place) } else { sink(from: place) }
  }

  private mutating func rise(from start: Int) {
    var place = start
    while place > 0, entries[place].at < entries[(place - 1) / 2].at {
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
      let child = right < entries.count && entries[right].at < entries[left].at ? right : left
      guard entries[child].at < entries[place].at else { return }
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
