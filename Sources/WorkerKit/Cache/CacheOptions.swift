/// How much a cache may keep, and when it removes values.
public struct CacheOptions: Sendable, Hashable {
  /// At most this many values; 0: any number.
  public var countLimit = 0
  /// At most this much cost, in the unit in which costs are given (bytes are best); 0: any.
  public var costLimit = 0
  /// Empties itself on a memory warning.
  public var emptiesOnWarning = true
  /// Empties itself when the worker enters the background: a suspended worker can't do it afterwards.
  public var emptiesInBackground = true
  /// Limits become smaller as the machine's memory becomes scarcer: three quarters at `warning`, a half at
  /// `urgent`, a quarter at `critical`; and grow again with it.
  public var followsPressure = true

  public init() {}
}

/// Counts of a cache since it was made.
public struct CacheStatistics: Sendable, Hashable {
  /// Lookups that found their value.
  public var hits: UInt64 = 0
  /// Lookups that didn't find their value.
  public var misses: UInt64 = 0
  /// Values that were removed because of a limit.
  public var evictions: UInt64 = 0
  /// Values that were removed at a warning, or on entering the background.
  public var shed: UInt64 = 0
  /// Values now.
  public var count = 0
  /// What they cost.
  public var cost = 0

  public init() {}

  /// Between 0 and 1; `nil` before the first lookup.
  public var hitRate: Double? {
    hits + misses == 0 ? nil : Double(hits) / Double(hits + misses)
  }
}
