import Synchronization

/// Content that a cache empties under its lock, while the values in it are released outside: their
/// deinitializers may be your code, and use the cache.
protocol SurrenderingContent: DiscardableContent {
  /// `discardContentIfPossible`, which returns the content to the caller; `nil`: there was none to discard.
  func surrenderContentIfPossible() -> (any Sendable)?
}

/// Any value as discardable content: for memory that `PurgeableData` can't hold, such as a tree of objects.
/// Only this process can discard it: at a warning, by the cache that has it.
public final class DiscardableValue<Value: Sendable>: SurrenderingContent {
  private struct State {
    var value: Value?
    var accesses = 1
  }

  private let state: Mutex<State>

  /// With one access, which the caller ends.
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
    // Outside of the lock: its deinitializer may run your code.
    _ = surrenderContentIfPossible()
  }

  public var isContentDiscarded: Bool { state.withLock { $0.value == nil } }

  func surrenderContentIfPossible() -> (any Sendable)? {
    state.withLock { state -> Value? in
      guard state.accesses == 0 else { return nil }
      return state.value.take()
    }
  }

  /// Runs `body` with the value, which stays meanwhile; `nil`: it was discarded.
  public func withContent<Result, Failure: Error>(
    _ body: (Value) throws(Failure) -> Result
  ) throws(Failure) -> Result? {
    guard beginContentAccess() else { return nil }
    defer { endContentAccess() }
    guard let value = state.withLock({ $0.value }) else { return nil }
    return try body(value)
  }
}
