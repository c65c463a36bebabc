import Synchronization

/// A value that can be made again. It is loaded on first access, unloaded on a memory warning and
/// on entering the background unless it is in use, and loaded again on the next access.
///
/// ```swift
/// @MainActor final class EntryScreen {
///   var draft: Draft                // can't be made again: stays
///   @Unloadable var photo: Bitmap   // can be made again
///
///   init(_ entry: Entry) {
///     draft = Draft(entry)
///     _photo = Unloadable { decode(entry.photoPath) }
///   }
/// }
/// ```
///
/// Keep what can't be made again (an edit in progress, a scroll position, a selection) in the owner
/// and not in the value: it would be lost when the value is unloaded. View controllers and their
/// views follow the same rule. What the screen *shows* can be drawn again from what its owner
/// *knows*.
///
/// Reading the property returns the value. Code that keeps a reference to the value keeps its
/// memory. For work that takes longer, `$photo.use { … }` keeps the value loaded for its duration,
/// so that it isn't loaded twice.
///
/// The wrapper is thread-safe: if two threads need the value at once, it is loaded once. `load`
/// mustn't read the property that it loads. A class that is `Sendable` by itself can't have a
/// `var`; use `let photo = Unloadable { … }` and `photo.value` there. Copies of the wrapper share
/// the value.
@propertyWrapper
public struct Unloadable<Value: Sendable>: Sendable {
  private let box: UnloadableBox<Value>

  /// Creates a wrapper whose value isn't loaded yet.
  ///
  /// - Parameters:
  ///   - worker: The worker whose events unload the value.
  ///   - load: Makes the value, on the thread that needs it. It may run more than once.
  public init(worker: Worker = .shared, _ load: @escaping @Sendable () -> Value) {
    box = UnloadableBox(load)
    worker.listeners.subscribers.add(box)
  }

  /// Creates a wrapper from an initial value: `@Unloadable var index = Index(path)`.
  ///
  /// The expression is evaluated at the first access, and again at the first access after the value
  /// was unloaded.
  public init(wrappedValue load: @autoclosure @escaping @Sendable () -> Value) {
    self.init(load)
  }

  /// The value. Reading it loads the value if necessary.
  public var wrappedValue: Value { box.value() }

  /// The value, for an `Unloadable` that isn't used as a property wrapper. Reading it loads the
  /// value if necessary.
  public var value: Value { box.value() }

  /// The wrapper itself, which has `use`, `unload` and `isLoaded`.
  public var projectedValue: Unloadable { self }

  /// Keeps the value loaded while `body` runs, and returns its result.
  public func use<Result, Failure: Error>(
    _ body: (Value) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let value = box.begin()
    defer { box.end() }
    return try body(value)
  }

  /// Keeps the value loaded while an asynchronous `body` runs, and returns its result.
  public func use<Result, Failure: Error>(
    isolation: isolated (any Actor)? = #isolation,
    _ body: (Value) async throws(Failure) -> Result
  ) async throws(Failure) -> Result {
    let value = box.begin()
    defer { box.end() }
    return try await body(value)
  }

  /// True if the value is loaded, and so takes memory.
  public var isLoaded: Bool { box.isLoaded }

  /// Unloads the value, unless it is in use.
  ///
  /// - Returns: true if the value isn't loaded afterwards, false if it is in use.
  @discardableResult public func unload() -> Bool { box.unload() }
}

final class UnloadableBox<Value: Sendable>: Shedder {
  private struct State {
    var value: Value?
    var uses = 0
  }

  private let load: @Sendable () -> Value
  private let state = Mutex(State())
  /// Locked while the value is loaded, so that `unload` and the other calls never wait for `load`.
  private let loading = Mutex(())

  init(_ load: @escaping @Sendable () -> Value) { self.load = load }

  var isLoaded: Bool { state.withLock { $0.value != nil } }

  func value() -> Value {
    if let value = state.withLock({ $0.value }) { return value }
    return loading.withLock { _ in
      if let value = state.withLock({ $0.value }) { return value }
      let value = load()
      state.withLock { $0.value = value }
      return value
    }
  }

  /// Counts a use and returns the value. The use is counted before the value is loaded: in the
  /// other order the value could be unloaded between the two.
  func begin() -> Value {
    state.withLock { $0.uses += 1 }
    return value()
  }

  func end() { state.withLock { $0.uses -= 1 } }

  func unload() -> Bool {
    let (value, isUnloaded) = state.withLock { state -> (Value?, Bool) in
      guard state.uses == 0 else { return (nil, state.value == nil) }
      return (state.value.take(), true)
    }
    // The value is released here, outside of the lock.
    _ = consume value
    return isUnloaded
  }

  func shed(for event: WorkerEvent) {
    switch event {
    case .didReceiveMemoryWarning, .didEnterBackground: _ = unload()
    default: break
    }
  }
}
