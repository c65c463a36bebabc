/// How much a cache may keep, and when it removes values.
public struct CacheOptions: Sendable, Hashable {
  /// The maximum number of values. 0 means no limit.
  public var countLimit = 0
  /// The maximum sum of the values' costs, in the unit of the costs; bytes are best. 0 means no
  /// limit.
  public var costLimit = 0
  /// True if the cache empties itself on a memory warning.
  public var emptiesOnWarning = true
  /// True if the cache empties itself when the worker enters the background. A suspended worker
  /// can't do it later.
  public var emptiesInBackground = true
  /// True if the limits follow the machine's pressure level: three quarters of them count at
  /// `warning`, a half at `urgent`, a quarter at `critical`.
  public var followsPressure = true

  /// Creates options without limits, of a cache that sheds and follows the pressure level.
  public init() {}
}

/// Counts of a cache since it was created.
public struct CacheStatistics: Sendable, Hashable {
  /// Lookups that found their value.
  public var hits: UInt64 = 0
  /// Lookups that didn't find their value.
  public var misses: UInt64 = 0
  /// Values that were removed because of a limit. A value that was too costly to be kept counts as
  /// well.
  public var evictions: UInt64 = 0
  /// Values that were removed at a warning, or on entering the background.
  public var shed: UInt64 = 0
  /// The number of values that the cache has now.
  public var count = 0
  /// The sum of the costs of the values that the cache has now.
  public var cost = 0

  /// Creates statistics in which all counts are 0.
  public init() {}

  /// The share of lookups that found their value, from 0 to 1; `nil` before the first lookup.
  public var hitRate: Double? {
    hits + misses == 0 ? nil : Double(hits) / Double(hits + misses)
  }
}
