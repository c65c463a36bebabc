import Synchronization

extension MemoryCache {
  /// Returns the value of a key, or `nil` if the cache doesn't have it any more, or never had it.
  /// The lookup counts as a use of the value.
  @inlinable public func value(for key: Key) -> Value? {
    guard let discardability else {
      return state.withLock { state in
        let value = state.entries.value(for: key)
        if value != nil { state.statistics.hits += 1 } else { state.statistics.misses += 1 }
        return value
      }
    }
    return value(for: key, discardability)
  }

  @inlinable func value(for key: Key, _ discardability: Discardability) -> Value? {
    let (value, lost) = state.withLock { state -> (Value?, Value?) in
      guard let value = state.entries.value(for: key) else {
        state.statistics.misses += 1
        return (nil, nil)
      }
      guard discardability.isDiscarded(value) else {
        state.statistics.hits += 1
        return (value, nil)
      }
      state.statistics.misses += 1
      return (nil, state.entries.remove(key)?.value)
    }
    // The lost value is released here, outside of the lock.
    _ = consume lost
    return value
  }

  /// Returns the value of a key. If the cache doesn't have it, `make` makes it, and the cache keeps
  /// it.
  ///
  /// `make` runs without a lock. If two threads make the same value at the same time, the first one
  /// that is put in stays, and both get it.
  ///
  /// - Parameters:
  ///   - cost: The cost of a made value, in the unit of the cost limit; bytes are best.
  ///   - make: Makes the value. The call throws what it throws, and nothing is kept then.
  @inlinable public func value<Failure: Error>(
    for key: Key, cost: (Value) -> Int = { _ in 0 }, orMake make: () throws(Failure) -> Value
  ) throws(Failure) -> Value {
    if let value = value(for: key) { return value }
    let made = try make()
    return keep(made, for: key, cost: cost(made))
  }

  /// Returns the value of a key. If the cache doesn't have it, the asynchronous `make` makes it,
  /// and the cache keeps it.
  ///
  /// If two tasks make the same value at the same time, the first one that is put in stays, and
  /// both get it.
  @inlinable public func value<Failure: Error>(
    for key: Key, cost: @Sendable (Value) -> Int = { _ in 0 },
    orMake make: () async throws(Failure) -> Value
  ) async throws(Failure) -> Value {
    if let value = value(for: key) { return value }
    let made = try await make()
    return keep(made, for: key, cost: cost(made))
  }

  @inlinable func keep(_ made: Value, for key: Key, cost: Int) -> Value {
    if let other = peek(key) { return other }
    insert(made, for: key, cost: cost)
    return made
  }

  /// Returns the value of a key, without counting a hit or a miss.
  @inlinable func peek(_ key: Key) -> Value? {
    state.withLock { state in
      guard let value = state.entries.value(for: key),
        discardability?.isDiscarded(value) != true
      else { return nil }
      return value
    }
  }

  /// Keeps a value, instead of the one that the key had. A value that costs more than the limit
  /// isn't kept, and the key has none then.
  ///
  /// - Parameter cost: The value's cost in the unit of the cost limit, 0 or more; bytes are best.
  @inlinable public func insert(_ value: Value, for key: Key, cost: Int = 0) {
    let cost = max(0, cost)
    // These values are released when the lock is open again: their deinitializers may run the
    // program's code.
    var replaced: Value?
    var removedValues = RemovedValues<Value>()
    state.withLock { state in
      guard !state.exceedsAlone(cost) else {
        replaced = state.entries.remove(key)?.value
        state.statistics.evictions += 1
        return
      }
      replaced = state.entries.insert(value, for: key, cost: cost)
      state.evict(discardability, into: &removedValues)
    }
    withExtendedLifetime((replaced, removedValues)) {}
  }

  /// Gets a value as `value(for:)` does, and puts one in as `insert(_:for:)` does, with cost 0.
  /// Setting `nil` removes the value.
  @inlinable public subscript(key: Key) -> Value? {
    get { value(for: key) }
    set {
      if let newValue { insert(newValue, for: key) } else { removeValue(for: key) }
    }
  }

  /// Removes the value of a key, in use or not.
  ///
  /// - Returns: the value that the key had.
  @inlinable @discardableResult public func removeValue(for key: Key) -> Value? {
    state.withLock { $0.entries.remove(key)?.value }
  }

  /// Removes all values, in use or not.
  @inlinable public func removeAll() {
    let all = state.withLock { $0.entries.removeAll() }
    _ = consume all
  }
}
