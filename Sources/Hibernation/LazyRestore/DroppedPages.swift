/// Addresses of an image whose pages a process has dropped. The order in which that happened, and
/// how often, doesn't matter.
struct DroppedPages: Sendable {
  /// Sorted by address; they don't touch each other.
  private(set) var ranges: [Range<UInt64>] = []

  func contains(_ address: UInt64) -> Bool {
    first(endingAfter: address)?.contains(address) ?? false
  }

  /// Returns the range that contains the address, or else the next one behind it.
  func first(endingAfter address: UInt64) -> Range<UInt64>? {
    let index = index { $0.upperBound > address }
    return index < ranges.count ? ranges[index] : nil
  }

  mutating func insert(_ range: Range<UInt64>) {
    if range.isEmpty { return }
    let low = index { $0.upperBound >= range.lowerBound }
    var (high, union) = (low, range)
    while high < ranges.count, ranges[high].lowerBound <= range.upperBound {
      union =
        min(
          union.lowerBound, ranges[high].lowerBound)..<max(
          union.upperBound, ranges[high].upperBound)
      high += 1
    }
    ranges.replaceSubrange(low..<high, with: [union])
  }

  /// Returns the index of the first range for which the condition, which holds from some range on,
  /// is true.
  private func index(where isBehind: (Range<UInt64>) -> Bool) -> Int {
    var (low, high) = (0, ranges.count)
    while low < high {
      let middle = (low + high) / 2
      if isBehind(ranges[middle]) { high = middle } else { low = middle + 1 }
    }
    return low
  }
}
