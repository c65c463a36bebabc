import Synchronization

extension MemoryCache {
  /// The cache's options. If new limits are smaller, values are removed at once.
  public var options: CacheOptions {
    get { state.withLock { $0.options } }
    set { change { $0.options = newValue } }
  }

  /// The maximum number of values. 0 means no limit.
  public var countLimit: Int {
    get { options.countLimit }
    set { change { $0.options.countLimit = newValue } }
  }

  /// The maximum sum of the values' costs. 0 means no limit.
  public var costLimit: Int {
    get { options.costLimit }
    set { change { $0.options.costLimit = newValue } }
  }

  /// The number of values now. Some of them may lose their content at any moment.
  public var count: Int { state.withLock { $0.entries.count } }

  /// The cache's counts until now.
  public var statistics: CacheStatistics {
    state.withLock { state in
      var statistics = state.statistics
      statistics.count = state.entries.count
      statistics.cost = state.entries.cost
      return statistics
    }
  }

  private func change(_ body: (inout State) -> Void) {
    var removedValues = RemovedValues<Value>()
    state.withLock { state in
      body(&state)
      state.evict(discardability, into: &removedValues)
    }
    withExtendedLifetime(removedValues) {}
  }
}

extension MemoryCache: Shedder {
  func shed(for event: WorkerEvent) {
    switch event {
    case .didReceiveMemoryWarning: if options.emptiesOnWarning { shed() }
    case .didEnterBackground: if options.emptiesInBackground { shed() }
    case .pressureChanged(let level): change { $0.pressure = level }
    default: break
    }
  }

  /// Removes everything but discardable content that is in use, as a memory warning does.
  public func shed() {
    guard let discardability else {
      let all = state.withLock { state in
        state.statistics.shed += UInt64(state.entries.count)
        return state.entries.removeAll()
      }
      _ = consume all
      return
    }
    var removedValues = RemovedValues<Value>()
    state.withLock { state in
      let count = state.removeContent(discardability, into: &removedValues) { _ in true }
      state.statistics.shed += UInt64(count)
    }
    withExtendedLifetime(removedValues) {}
  }
}

extension MemoryCache.State {
  @inlinable func limit(_ base: Int) -> Int {
    guard base > 0 else { return .max }
    guard options.followsPressure else { return base }
    switch pressure {
    case .normal: return base
    case .warning: return max(1, base / 4 * 3 + base % 4 * 3 / 4)
    case .urgent: return max(1, base / 2)
    case .critical: return max(1, base / 4)
    }
  }

  @inlinable func exceedsAlone(_ cost: Int) -> Bool { cost > limit(options.costLimit) }

  @inlinable var exceeds: Bool {
    entries.count > limit(options.countLimit) || entries.cost > limit(options.costLimit)
  }

  /// Removes values until the limits are kept.
  @inlinable mutating func evict(
    _ discardability: MemoryCache.Discardability?, into removedValues: inout RemovedValues<Value>
  ) {
    if let discardability {
      let count = removeContent(discardability, into: &removedValues) { $0.exceeds }
      statistics.evictions += UInt64(count)
      return
    }
    while exceeds, let removed = entries.removeOldest() {
      removedValues.append(removed.value)
      statistics.evictions += 1
    }
  }

  /// Discards content from the least recently used on, while `shouldContinue` is true.
  ///
  /// Content in use stays, and counts as used just now: it is tried once at most, and not first the
  /// next time.
  ///
  /// - Returns: the number of entries that were removed.
  @inlinable mutating func removeContent(
    _ discardability: MemoryCache.Discardability, into removedValues: inout RemovedValues<Value>,
    while shouldContinue: (MemoryCache.State) -> Bool
  ) -> Int {
    var removed = 0
    for _ in 0..<entries.count {
      guard shouldContinue(self), let value = entries.oldestValue else { break }
      if let content = discardability.discard(value) { removedValues.contents.append(content) }
      if discardability.isDiscarded(value) {
        if let entry = entries.removeOldest() { removedValues.append(entry.value) }
        removed += 1
      } else {
        entries.renewOldest()
      }
    }
    return removed
  }
}

/// Removed values, kept until they can be released outside of the lock. The first one takes no
/// memory of its own: a put into a full cache removes only one.
@usableFromInline struct RemovedValues<Value: Sendable>: Sendable {
  @usableFromInline var first: Value?
  @usableFromInline var others: [Value] = []
  /// The contents of values that have been emptied.
  @usableFromInline var contents: [any Sendable] = []

  @inlinable init() {}

  @inlinable mutating func append(_ value: Value) {
    if first == nil { first = value } else { others.append(value) }
  }
}
