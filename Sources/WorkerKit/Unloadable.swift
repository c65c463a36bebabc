import Synchronization

/// A value that can be made again: it is loaded on first access, unloaded on a memory warning and on
/// entering the background unless it is in use, and loaded again on the next access.
///
/// ```swift
/// @MainActor final class EntryScreen {
///   var draft: Draft                // can't be made again: stays
///   @Unloadable var photo: Bitmap   // can
///
///   init(_ entry: Entry) {
///     draft = Draft(entry)
///     _photo = Unloadable { decode(entry.photoPath) }
///   }
/// }
/// ```
///
/// The rule is that of a view controller and its view: what the screen *shows* can be drawn again from what
/// its owner *knows*, and only the latter must survive. So keep what can't be made again (an edit in progress,
/// a scroll position, a selection) in the owner, not in the value, which would take it along.
///
/// Reading the property returns the value; code that keeps a reference keeps the memory. For work that takes
/// longer, `$photo.use { … }` keeps the value loaded for its duration, so that it isn't loaded twice.
///
/// Thread-safe: two that need it at once load it once. `load` mustn't read the property that it loads. A class
/// that is `Sendable` by itself can't have a `var`: there, `let photo = Unloadable { … }` and `photo.value` are the
/// same. Copies share the value.
@propertyWrapper
public struct Unloadable<Value: Sendable>: Sendable {
  private let box: UnloadableBox<Value>

  /// - Parameters:
  ///   - worker: whose events it follows.
  ///   - load: makes the value, on whichever thread needs it; more than once in a life.
  public init(worker: Worker = .shared, _ load: @escaping @Sendable () -> Value) {
    box = UnloadableBox(load)
    worker.listeners.subscribers.add(box)
  }

  /// `@Unloadable var index = Index(path)`: the expression is evaluated at the first access, and again after
  /// the value was unloaded.
  public init(wrappedValue load: @autoclosure @escaping @Sendable () -> Value) {
    self.init(load)
  }

  /// The value, loaded if necessary.
  public var wrappedValue: Value { box.value() }

  /// The same, if it isn't used as a property wrapper.
  public var value: Value { box.value() }

  /// For `use`, `unload` and `isLoaded`.
  public var projectedValue: Unloadable { self }

  /// Keeps the value loaded while `body` runs.
  public func use<Result, Failure: Error>(
    _ body: (Value) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    let value = box.begin()
    defer { box.end() }
    return try body(value)
  }

  /// The same for work that waits.
  public func use<Result, Failure: Error>(
    isolation: isolated (any Actor)? = #isolation,
    _ body: (Value) async throws(Failure) -> Result
  ) async throws(Failure) -> Result {
    let value = box.begin()
    defer { box.end() }
    return try await body(value)
  }

  /// It takes memory now.
  public var isLoaded: Bool { box.isLoaded }

  /// Unloads the value, unless it is in use.
  ///
  /// - Returns: whether it was unloaded, or wasn't loaded before.
  @discardableResult public func unload() -> Bool { box.unload() }
}

final class UnloadableBox<Value: Sendable>: Shedder {
  private struct State {
    var value: Value?
    var uses = 0
  }

  private let load: @Sendable () -> Value
  private let state = Mutex(State())
  /// Held while the value is loaded, so that unloading and the other calls never wait for that.
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

  /// In use first, loaded then: in the other order it could be unloaded between the two.
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
