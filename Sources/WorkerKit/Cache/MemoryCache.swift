import Synchronization

/// A cache: it keeps values that can be made again while there is memory for them. It is
/// thread-safe.
///
/// ```swift
/// let thumbnails = MemoryCache<Photo.ID, Image>(costLimit: 8 << 20)
/// let image = thumbnails.value(for: photo.id, cost: \.byteCount) { decode(photo) }
/// ```
///
/// The cache empties itself on a memory warning and when the worker enters the background. It keeps
/// within its limits by removing the values that haven't been used for the longest time. Therefore
/// a value that was put in a moment ago may be missing: every access returns an optional, or has a
/// closure that makes the value again.
///
/// If the static type `Value` conforms to ``DiscardableContent``, the cache asks values to discard
/// their content: a value in use stays, and one whose content was discarded isn't found.
///
/// Getting and putting take constant time, under a lock. Keys are hashed and compared there, so a
/// key's `==` and a content's `discardContentIfPossible` mustn't use the cache. Values are released
/// outside of the lock.
public final class MemoryCache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  @usableFromInline struct State: Sendable {
    @usableFromInline var entries = LeastRecentlyUsed<Key, Value>()
    @usableFromInline var options: CacheOptions
    @usableFromInline var pressure = PressureLevel.normal
    /// The counts so far. `count` and `cost` stay 0: the entries have them.
    @usableFromInline var statistics = CacheStatistics()
  }

  /// How to discard values that are discardable content.
  @usableFromInline struct Discardability: Sendable {
    /// Discards the content and returns the values in it, to be released outside of the lock.
    @usableFromInline let discard: @Sendable (Value) -> (any Sendable)?
    @usableFromInline let isDiscarded: @Sendable (Value) -> Bool
  }

  /// The cache's name, for people. WorkerKit doesn't use it.
  public let name: String
  @usableFromInline let state: Mutex<State>
  @usableFromInline let discardability: Discardability?

  init(
    _ name: String, options: CacheOptions, discardability: Discardability?, worker: Worker
  ) {
    self.name = name
    self.discardability = discardability
    state = Mutex(State(options: options))
    worker.listeners.subscribers.add(self)
    // The pressure level is read after the cache was added, and under the lock: a level that is
    // reported meanwhile is set afterwards, and stays.
    state.withLock { $0.pressure = worker.pressure }
  }

  /// Creates a cache.
  ///
  /// - Parameters:
  ///   - name: The cache's name, for people.
  ///   - options: The limits, and when the cache empties itself.
  ///   - worker: The worker whose events the cache follows.
  public convenience init(
    name: String = "", options: CacheOptions = CacheOptions(), worker: Worker = .shared
  ) {
    self.init(name, options: options, discardability: nil, worker: worker)
  }

  /// Creates a cache with a limit of costs and, if it isn't 0, of the number of values. 0 means no
  /// limit.
  public convenience init(
    name: String = "", countLimit: Int = 0, costLimit: Int, worker: Worker = .shared
  ) {
    self.init(name, options: .limits(countLimit, costLimit), discardability: nil, worker: worker)
  }

  /// Creates a cache with a limit of the number of values. 0 means no limit.
  public convenience init(name: String = "", countLimit: Int, worker: Worker = .shared) {
    self.init(name, options: .limits(countLimit, 0), discardability: nil, worker: worker)
  }
}

extension MemoryCache where Value: DiscardableContent {
  /// Creates a cache of discardable content.
  ///
  /// - Parameters:
  ///   - name: The cache's name, for people.
  ///   - options: The limits, and when the cache empties itself.
  ///   - worker: The worker whose events the cache follows.
  public convenience init(
    name: String = "", options: CacheOptions = CacheOptions(), worker: Worker = .shared
  ) {
    self.init(name, options: options, discardability: .ofContent, worker: worker)
  }

  /// Creates a cache of discardable content with a limit of costs and, if it isn't 0, of the number
  /// of values. 0 means no limit.
  public convenience init(
    name: String = "", countLimit: Int = 0, costLimit: Int, worker: Worker = .shared
  ) {
    self.init(
      name, options: .limits(countLimit, costLimit), discardability: .ofContent, worker: worker)
  }

  /// Creates a cache of discardable content with a limit of the number of values. 0 means no limit.
  public convenience init(name: String = "", countLimit: Int, worker: Worker = .shared) {
    self.init(name, options: .limits(countLimit, 0), discardability: .ofContent, worker: worker)
  }
}

extension MemoryCache.Discardability where Value: DiscardableContent {
  static var ofContent: Self {
    let surrenders = Value.self is any SurrenderingContent.Type
    return Self(
      discard: { value in
        if surrenders, let value = value as? any SurrenderingContent {
          return value.surrenderContentIfPossible()
        }
        value.discardContentIfPossible()
        return nil
      }, isDiscarded: { $0.isContentDiscarded })
  }
}

extension CacheOptions {
  fileprivate static func limits(_ count: Int, _ cost: Int) -> CacheOptions {
    var options = CacheOptions()
    options.countLimit = count
    options.costLimit = cost
    return options
  }
}
