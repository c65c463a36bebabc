/// A set of small numbers that is changed and counted in constant time. The members are dense in an
/// array, and each number knows its position there. The order means nothing.
struct SlotSet: Sendable {
  private(set) var members: [Int32] = []
  /// The position in `members` of each number, or −1.
  private var places: [Int32] = []

  var isEmpty: Bool { members.isEmpty }
  var count: Int { members.count }

  func contains(_ slot: Int) -> Bool { slot < places.count && places[slot] >= 0 }

  mutating func removeAll() {
    for slot in members { places[Int(slot)] = -1 }
    members.removeAll(keepingCapacity: true)
  }

  mutating func insert(_ slot: Int) {
    while places.count <= slot { places.append(-1) }
    guard places[slot] < 0 else { return }
    places[slot] = Int32(members.count)
    members.append(Int32(slot))
  }

  mutating func remove(_ slot: Int) {
    guard slot < places.count, places[slot] >= 0 else { return }
    let place = Int(places[slot])
    let last = members.removeLast()
    if place < members.count {
      members[place] = last
      places[Int(last)] = Int32(place)
    }
    places[slot] = -1
  }
}
