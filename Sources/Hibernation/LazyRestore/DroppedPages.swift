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
    let index = ranges.partitioningIndex { $0.upperBound > address }
    return index < ranges.count ? ranges[index] : nil
  }

  mutating func insert(_ range: Range<UInt64>) {
    if range.isEmpty { return }
    let low = ranges.partitioningIndex { $0.upperBound >= range.lowerBound }
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
}
