import Synchronization

/// Passes a value from one thread to another, once. It keeps no reference after the value was
/// consumed.
///
/// The thread that makes a value may be late, and the receiver may have given up. A value that no
/// receiver waits for is destroyed on the thread that made it, because closing its files may hang,
/// too.
public final class LateResult<Value: Sendable>: Sendable {
  private struct State {
    var value: Value?
    var isAbandoned = false
  }
  private let state: Mutex<State>

  public init(_ value: Value? = nil) { state = Mutex(State(value: value)) }

  /// Stores the value if a receiver still waits for it. Otherwise it returns false.
  @discardableResult
  public func set(_ value: Value) -> Bool {
    state.withLock { state in
      if !state.isAbandoned { state.value = value }
      return !state.isAbandoned
    }
  }

  /// Removes and returns the value; nil if there is none (any more).
  public func consume() -> Value? {
    state.withLock { state in
      defer { state.value = nil }
      return state.value
    }
  }

  /// True if the receiver has given up.
  public var isAbandoned: Bool { state.withLock { $0.isAbandoned } }

  /// Gives up: later values are refused.
  public func abandon() { state.withLock { $0.isAbandoned = true } }
}
