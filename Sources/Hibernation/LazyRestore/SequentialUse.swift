/// Detects that a trimmed worker uses most of its memory in order, perhaps in several streams: a
/// search through all objects, a garbage collection. The pages of a short request are elsewhere
/// each time.
struct SequentialUse {
  private var recent: [(page: UInt64, time: Int64, isNear: Bool)] = []

  /// The number of chunks that decide.
  static let count = 16
  /// The number of them that must be near an earlier one.
  private static let minNear = 12
  /// Two chunks are near if their addresses differ by at most this number of bytes.
  private static let near: UInt64 = 64 * 1024
  /// They must have been needed within this time, in ns: on a busy machine each takes some ms.
  private static let limit: Int64 = 100_000_000

  /// Adds a page of a chunk that a thread has waited for.
  ///
  /// - Parameter now: in ns of the monotonic clock.
  mutating func add(_ page: UInt64, at now: Int64) {
    let isNear = recent.contains { max($0.page, page) - min($0.page, page) <= Self.near }
    recent.append((page, now, isNear))
    if recent.count > Self.count { recent.removeFirst() }
  }

  var isSeen: Bool {
    guard recent.count == Self.count, let first = recent.first, let last = recent.last else {
      return false
    }
    return last.time - first.time < Self.limit && recent.count(where: \.isNear) >= Self.minNear
  }

  mutating func reset() { recent = [] }
}
