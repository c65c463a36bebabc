/// A set of indices with one bit for each. It can change while it is read in ascending order.
struct IndexBits: Sendable {
  private var words: [UInt64] = []
  private(set) var count = 0

  func contains(_ index: Int) -> Bool { first(from: index) == index }

  mutating func insert(_ index: Int) {
    let (word, bit) = (index >> 6, UInt64(1) << UInt64(index & 63))
    while words.count <= word { words.append(0) }
    guard words[word] & bit == 0 else { return }
    words[word] |= bit
    count += 1
  }

  mutating func remove(_ index: Int) {
    let (word, bit) = (index >> 6, UInt64(1) << UInt64(index & 63))
    guard word < words.count, words[word] & bit != 0 else { return }
    words[word] &= ~bit
    count -= 1
  }

  /// The smallest member that is at least `start`.
  func first(from start: Int) -> Int? {
    guard count > 0 else { return nil }
    var word = start >> 6
    guard word < words.count else { return nil }
    var bits = words[word] & (~0 << UInt64(start & 63))
    while bits == 0 {
      word += 1
      guard word < words.count else { return nil }
      bits = words[word]
    }
    return word << 6 + bits.trailingZeroBitCount
  }
}
