import Synchronization

/// Content that a cache discards under its lock. The values in the content are released outside of
/// the lock: their deinitializers may be the program's code, and use the cache.
protocol SurrenderingContent: DiscardableContent {
  /// Discards the content as `discardContentIfPossible` does, and returns it to the caller. The
  /// result is `nil` if there was no content, or if it is in use.
  func surrenderContentIfPossible() -> (any Sendable)?
}

/// Any value as discardable content, for memory that `PurgeableData` can't hold, such as a tree of
/// objects.
///
/// Only this process can discard it: the cache that has it does so on a warning or at a limit. It
/// is thread-safe.
public final class DiscardableValue<Value: Sendable>: SurrenderingContent {
  private struct State {
    var value: Value?
    var accesses = 1
  }

  private let state: Mutex<State>

  /// Creates content from a value. It has one access, which the caller ends by `endContentAccess`.
  public init(_ value: Value) { state = Mutex(State(value: value)) }

  public func beginContentAccess() -> Bool {
    state.withLock { state in
      guard state.value != nil else { return false }
      state.accesses += 1
      return true
    }
  }

  public func endContentAccess() {
    state.withLock { state in
      precondition(state.accesses > 0, "endContentAccess() without beginContentAccess()")
      state.accesses -= 1
    }
  }

  public func discardContentIfPossible() {
    // The value is released outside of the lock: its deinitializer may run the program's code.
    _ = surrenderContentIfPossible()
  }

  public var isContentDiscarded: Bool { state.withLock { $0.value == nil } }

  func surrenderContentIfPossible() -> (any Sendable)? {
    state.withLock { state -> Value? in
      guard state.accesses == 0 else { return nil }
      return state.value.take()
    }
  }

  /// Runs `body` with the value, which stays meanwhile, and returns its result. If the value was
  /// discarded, the result is `nil` and `body` doesn't run.
  public func withContent<Result, Failure: Error>(
    _ body: (Value) throws(Failure) -> Result
  ) throws(Failure) -> Result? {
    guard beginContentAccess() else { return nil }
    defer { endContentAccess() }
    guard let value = state.withLock({ $0.value }) else { return nil }
    return try body(value)
  }
}
