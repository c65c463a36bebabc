/// Values in the order of their last use. All operations take constant time: entries are in one
/// array and linked by their indices there, and a dictionary has the index of each key. Finding or
/// moving an entry allocates nothing.
///
/// Removed values are returned, so that the caller can release them outside of its lock.
///
/// All that a cache's get and put call is inlinable: specialized for its types, a get takes a fifth
/// of the time.
@usableFromInline struct LeastRecentlyUsed<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  @usableFromInline struct Removed: Sendable {
    @usableFromInline var key: Key
    @usableFromInline var value: Value
    @usableFromInline var cost: Int

    @inlinable init(key: Key, value: Value, cost: Int) {
      self.key = key
      self.value = value
      self.cost = cost
    }
  }

  @usableFromInline struct Entry: Sendable {
    /// The entry's key, value and cost; `nil` in a free entry.
    @usableFromInline var content: Removed?
    /// The next entry towards the most recently used; in a free entry the next free one.
    @usableFromInline var newer: Int32
    @usableFromInline var older: Int32

    @inlinable init() {
      content = nil
      newer = LeastRecentlyUsed.none
      older = LeastRecentlyUsed.none
    }
  }

  @inlinable static var none: Int32 { -1 }

  @usableFromInline var places: [Key: Int32] = [:]
  @usableFromInline var entries: ContiguousArray<Entry> = []
  @usableFromInline var newest = none
  @usableFromInline var oldest = none
  @usableFromInline var firstFree = none
  @usableFromInline var cost = 0

  @inlinable init() {}

  @inlinable var count: Int { places.count }

  /// Returns the value of a key, and counts as a use of it.
  @inlinable mutating func value(for key: Key) -> Value? {
    guard let place = places[key] else { return nil }
    makeNewest(place)
    return entries[Int(place)].content?.value
  }

  /// - Returns: the value that the key had before.
  @inlinable mutating func insert(_ value: Value, for key: Key, cost: Int) -> Value? {
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

  @inlinable mutating func remove(_ key: Key) -> Removed? {
    guard let place = places.removeValue(forKey: key) else { return nil }
    return free(place)
  }

  /// The value that hasn't been used for the longest time.
  @inlinable var oldestValue: Value? { content(oldest)?.value }

  @inlinable mutating func removeOldest() -> Removed? {
    guard let key = content(oldest)?.key else { return nil }
    return remove(key)
  }

  /// Counts as a use of the oldest entry.
  @inlinable mutating func renewOldest() {
    if oldest != Self.none { makeNewest(oldest) }
  }

  /// Removes all entries.
  ///
  /// - Returns: all entries, and with them the memory that held them.
  @inlinable mutating func removeAll() -> LeastRecentlyUsed {
    defer { self = LeastRecentlyUsed() }
    return self
  }

  /// The keys, from the most recently used on.
  var keys: [Key] {
    var keys: [Key] = []
    var place = newest
    while let content = content(place) {
      keys.append(content.key)
      place = entries[Int(place)].older
    }
    return keys
  }

  @inlinable func content(_ place: Int32) -> Removed? {
    place == Self.none ? nil : entries[Int(place)].content
  }

  @inlinable mutating func freePlace() -> Int32 {
    guard firstFree != Self.none else {
      entries.append(Entry())
      return Int32(entries.count - 1)
    }
    defer { firstFree = entries[Int(firstFree)].newer }
    return firstFree
  }

  @inlinable mutating func free(_ place: Int32) -> Removed? {
    unlink(place)
    let content = entries[Int(place)].content.take()
    entries[Int(place)].newer = firstFree
    firstFree = place
    cost -= content?.cost ?? 0
    return content
  }

  @inlinable mutating func makeNewest(_ place: Int32) {
    guard place != newest else { return }
    unlink(place)
    linkNewest(place)
  }

  @inlinable mutating func linkNewest(_ place: Int32) {
    entries[Int(place)].newer = Self.none
    entries[Int(place)].older = newest
    if newest != Self.none { entries[Int(newest)].newer = place } else { oldest = place }
    newest = place
  }

  @inlinable mutating func unlink(_ place: Int32) {
    let (newer, older) = (entries[Int(place)].newer, entries[Int(place)].older)
    if newer != Self.none { entries[Int(newer)].older = older } else { newest = older }
    if older != Self.none { entries[Int(older)].newer = newer } else { oldest = newer }
  }
}
