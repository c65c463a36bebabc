/// A set of small numbers that is changed and counted in constant time. The members are dense in an
/// array, and each number knows its position there. The order means nothing.
struct SlotSet: Sendable {
  private(set) var members: [Int32] = []
  /// The position in `members` of each number, or −1.
  private var positions: [Int32] = []

  var isEmpty: Bool { members.isEmpty }

  func contains(_ slot: Int) -> Bool { slot < positions.count && positions[slot] >= 0 }

  mutating func removeAll() {
    for slot in members { positions[Int(slot)] = -1 }
    members.removeAll(keepingCapacity: true)
  }

  mutating func insert(_ slot: Int) {
    while positions.count <= slot { positions.append(-1) }
    guard positions[slot] < 0 else { return }
    positions[slot] = Int32(members.count)
    members.append(Int32(slot))
  }

  mutating func remove(_ slot: Int) {
    guard slot < positions.count, positions[slot] >= 0 else { return }
    let position = Int(positions[slot])
    let last = members.removeLast()
    if position < members.count {
      members[position] = last
      positions[Int(last)] = Int32(position)
    }
    positions[slot] = -1
  }
}
