/// A worker's footprint during the last hour, while a page was open. There is one value for five
/// seconds, the largest of them: a short peak stays visible.
struct FootprintRing: Hashable, Sendable {
  static let secondsOfSlot = 5
  static let slots = 720

  private struct Entry: Hashable, Sendable {
    /// The index of the five seconds since this server's start.
    var slot: Int
    var bytes: Int64
  }

  /// The entries, the oldest first. Times without a measurement have none.
  private var entries: [Entry] = []

  /// - Parameter seconds: The time of this server's clock, which never runs backwards.
  mutating func add(_ bytes: Int64, at seconds: Double) {
    let slot = Int(seconds) / Self.secondsOfSlot
    if let last = entries.last, last.slot == slot {
      entries[entries.count - 1].bytes = max(last.bytes, bytes)
      return
    }
    entries.append(Entry(slot: slot, bytes: bytes))
    let old = entries.prefix { $0.slot <= slot - Self.slots }.count
    if old > 0 { entries.removeFirst(old) }
  }

  /// Returns each value with its age in seconds, the oldest first.
  func points(at seconds: Double) -> [[Int64]] {
    let now = Int64(seconds)
    return entries.map { [max(0, now - Int64($0.slot * Self.secondsOfSlot)), $0.bytes] }
  }
}
