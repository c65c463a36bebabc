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

  @usableFromInline var indices: [Key: Int32] = [:]
  @usableFromInline var entries: ContiguousArray<Entry> = []
  @usableFromInline var newest = none
  @usableFromInline var oldest = none
  @usableFromInline var firstFree = none
  @usableFromInline var cost = 0

  @inlinable init() {}

  @inlinable var count: Int { indices.count }

  /// Returns the value of a key, and counts as a use of it.
  @inlinable mutating func value(for key: Key) -> Value? {
    guard let index = indices[key] else { return nil }
    makeNewest(index)
    return entries[Int(index)].content?.value
  }

  /// - Returns: the value that the key had before.
  @inlinable mutating func insert(_ value: Value, for key: Key, cost: Int) -> Value? {
    if let index = indices[key] {
      makeNewest(index)
      let former = entries[Int(index)].content
      self.cost += cost - (former?.cost ?? 0)
      entries[Int(index)].content?.value = value
      entries[Int(index)].content?.cost = cost
      return former?.value
    }
    let index = freeIndex()
    entries[Int(index)].content = Removed(key: key, value: value, cost: cost)
    linkNewest(index)
    indices[key] = index
    self.cost += cost
    return nil
  }

  @inlinable mutating func remove(_ key: Key) -> Removed? {
    guard let index = indices.removeValue(forKey: key) else { return nil }
    return free(index)
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
    var index = newest
    while let content = content(index) {
      keys.append(content.key)
      index = entries[Int(index)].older
    }
    return keys
  }

  @inlinable func content(_ index: Int32) -> Removed? {
    index == Self.none ? nil : entries[Int(index)].content
  }

  @inlinable mutating func freeIndex() -> Int32 {
    guard firstFree != Self.none else {
      entries.append(Entry())
      return Int32(entries.count - 1)
    }
    defer { firstFree = entries[Int(firstFree)].newer }
    return firstFree
  }

  @inlinable mutating func free(_ index: Int32) -> Removed? {
    unlink(index)
    let content = entries[Int(index)].content.take()
    entries[Int(index)].newer = firstFree
    firstFree = index
    cost -= content?.cost ?? 0
    return content
  }

  @inlinable mutating func makeNewest(_ index: Int32) {
    guard index != newest else { return }
    unlink(index)
    linkNewest(index)
  }

  @inlinable mutating func linkNewest(_ index: Int32) {
    entries[Int(index)].newer = Self.none
    entries[Int(index)].older = newest
    if newest != Self.none { entries[Int(newest)].newer = index } else { oldest = index }
    newest = index
  }

  @inlinable mutating func unlink(_ index: Int32) {
    let (newer, older) = (entries[Int(index)].newer, entries[Int(index)].older)
    if newer != Self.none { entries[Int(newer)].older = older } else { newest = older }
    if older != Self.none { entries[Int(older)].newer = newer } else { oldest = newer }
  }
}
