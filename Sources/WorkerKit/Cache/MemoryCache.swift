import Synchronization

/// Keeps values that can be made again, as long as there is memory for them. Thread-safe.
///
/// ```swift
/// let thumbnails = MemoryCache<Photo.ID, Image>(costLimit: 8 << 20)
/// let image = thumbnails.value(for: photo.id, cost: \.byteCount) { decode(photo) }
/// ```
///
/// It empties itself on a memory warning and when the worker enters the background, and keeps within its limits
/// by dropping what hasn't been used for the longest. So what was put in a moment ago may be missing: every
/// access returns an optional, or has a closure that makes the value again.
///
/// Values of a type that conforms to ``DiscardableContent`` are treated gently: they are asked to discard
/// their content, and stay where they are in use; and one whose content has been taken meanwhile isn't found.
/// It is the static type `Value` that counts.
///
/// Getting and putting take constant time, under a lock; keys are hashed and compared there, so a key's
/// `==`, and a content's `discardContentIfPossible`, mustn't use the cache. Values are let go of outside.
public final class MemoryCache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  @usableFromInline struct State: Sendable {
    @usableFromInline var entries = LeastRecentlyUsed<Key, Value>()
    @usableFromInline var options: CacheOptions
    @usableFromInline var pressure = PressureLevel.normal
    @usableFromInline var hits: UInt64 = 0
    @usableFromInline var misses: UInt64 = 0
    @usableFromInline var evictions: UInt64 = 0
    @usableFromInline var shed: UInt64 = 0

    init(options: CacheOptions) { self.options = options }
  }

  /// For values that are discardable content.
  @usableFromInline struct Discardability: Sendable {
    /// Returns the values in its content, to be released outside of the lock.
    @usableFromInline let discard: @Sendable (Value) -> (any Sendable)?
    @usableFromInline let isDiscarded: @Sendable (Value) -> Bool
  }

  /// For people.
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
    // Only now, and under the lock: a level that is reported meanwhile comes afterwards, and stays.
    state.withLock { $0.pressure = worker.pressure }
  }

  /// - Parameters:
  ///   - name: for people.
  ///   - options: its limits, and when it empties itself.
  ///   - worker: whose events it follows.
  public convenience init(
    name: String = "", options: CacheOptions = CacheOptions(), worker: Worker = .shared
  ) {
    self.init(name, options: options, discardability: nil, worker: worker)
  }

  /// With limits; 0: none.
  public convenience init(
    name: String = "", countLimit: Int = 0, costLimit: Int, worker: Worker = .shared
  ) {
    self.init(name, options: .limits(countLimit, costLimit), discardability: nil, worker: worker)
  }

  /// With a limit; 0: none.
  public convenience init(name: String = "", countLimit: Int, worker: Worker = .shared) {
    self.init(name, options: .limits(countLimit, 0), discardability: nil, worker: worker)
  }
}

extension MemoryCache where Value: DiscardableContent {
  /// - Parameters:
  ///   - name: for people.
  ///   - options: its limits, and when it empties itself.
  ///   - worker: whose events it follows.
  public convenience init(
    name: String = "", options: CacheOptions = CacheOptions(), worker: Worker = .shared
  ) {
    self.init(name, options: options, discardability: .ofContent, worker: worker)
  }

  /// With limits; 0: none.
  public convenience init(
    name: String = "", countLimit: Int = 0, costLimit: Int, worker: Worker = .shared
  ) {
    self.init(
      name, options: .limits(countLimit, costLimit), discardability: .ofContent, worker: worker)
  }

  /// With a limit; 0: none.
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
