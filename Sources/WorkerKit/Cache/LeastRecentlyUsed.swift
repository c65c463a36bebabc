/// Values in the order of their last use, with all operations in constant time: entries in one array, linked
/// by their places there, and a dictionary of places. Finding or moving an entry allocates nothing.
///
/// What leaves is returned, so that its owner can let go of it when nobody waits.
struct LeastRecentlyUsed<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  struct Removed: Sendable {
    var key: Key
    var value: Value
    var cost: Int
  }

  private struct Entry: Sendable {
    /// `nil` in an entry that is free.
    var content: Removed?
    /// Towards the most recently used; in a free entry the next free one.
    var newer: Int32
    var older: Int32
  }

  private static var none: Int32 { -1 }

  private var places: [Key: Int32] = [:]
  private var entries: ContiguousArray<Entry> = []
  private var newest = none
  private var oldest = none
  private var firstFree = none
  private(set) var cost = 0

  var count: Int { places.count }

  /// It counts as used.
  mutating func value(for key: Key) -> Value? {
    guard let place = places[key] else { return nil }
    makeNewest(place)
    return entries[Int(place)].content?.value
  }

  /// - Returns: what it replaces.
  mutating func insert(_ value: Value, for key: Key, cost: Int) -> Value? {
    if let place = places[key] {
      makeNewest(place)
      let former = entries[Int(place)].content
      self.cost += cost - (former?.cost ?? 0)
      entries[Int(place)].content?.value = value
      entries[Int(place)].content?.cost = cost
      return former?.value
    }
    let place = freePlace()
    entries[Int(place)].content = Removed(key: key, value: value, cost: cost)
    linkNewest(place)
    places[key] = place
    self.cost += cost
    return nil
  }

  mutating func remove(_ key: Key) -> Removed? {
    guard let place = places.removeValue(forKey: key) else { return nil }
    return free(place)
  }

  /// The one that hasn't been used for the longest.
  var oldestValue: Value? { content(oldest)?.value }

  mutating func removeOldest() -> Removed? {
    guard let key = content(oldest)?.key else { return nil }
    return remove(key)
  }

  /// The oldest counts as used.
  mutating func renewOldest() {
    if oldest != Self.none { makeNewest(oldest) }
  }

  /// - Returns: all of it, with the memory that held it.
  mutating func removeAll() -> LeastRecentlyUsed {
    defer { self = LeastRecentlyUsed() }
    return self
  }

  /// From the most recently used on.
  var keys: [Key] {
    var keys: [Key] = []
    var place = newest
    while let content = content(place) {
      keys.append(content.key)
      place = entries[Int(place)].older
    }
    return keys
  }

  private func content(_ place: Int32) -> Removed? {
    place == Self.none ? nil : entries[Int(place)].content
  }

  private mutating func freePlace() -> Int32 {
    guard firstFree != Self.none else {
      entries.append(Entry(content: nil, newer: Self.none, older: Self.none))
      return Int32(entries.count - 1)
    }
    defer { firstFree = entries[Int(firstFree)].newer }
    return firstFree
  }

  private mutating func free(_ place: Int32) -> Removed? {
    unlink(place)
    let content = entries[Int(place)].content.take()
    entries[Int(place)].newer = firstFree
    firstFree = place
    cost -= content?.cost ?? 0
    return content
  }

  private mutating func makeNewest(_ place: Int32) {
    guard place != newest else { return }
    unlink(place)
    linkNewest(place)
  }

  private mutating func linkNewest(_ place: Int32) {
    entries[Int(place)].newer = Self.none
    entries[Int(place)].older = newest
    if newest != Self.none { entries[Int(newest)].newer = place } else { oldest = place }
    newest = place
  }

  private mutating func unlink(_ place: Int32) {
    let (newer, older) = (entries[Int(place)].newer, entries[Int(place)].older)
    if newer != Self.none { entries[Int(newer)].older = older } else { newest = older }
    if older != Self.none { entries[Int(older)].newer = newer } else { oldest = newer }
  }
}
