import Synchronization

/// Passes a result from a thread that may be late to a receiver that may have given up. A result
/// that no receiver waits for is destroyed on the thread that made it, because closing its files
/// may hang, too.
public final class LateResult<Value: Sendable>: Sendable {
  private struct State {
    var value: Value?
    var isAbandoned = false
  }
  private let state = Mutex(State())

  public init() {}

  /// Stores the result if a receiver still waits for it. Otherwise it returns false.
  public func set(_ value: Value) -> Bool {
    state.withLock { state in
      if !state.isAbandoned { state.value = value }
      return !state.isAbandoned
    }
  }

  /// Removes and returns the result; nil if there is none yet.
  public func take() -> Value? {
    state.withLock { state in
      defer { state.value = nil }
      return state.value
    }
  }

  /// Gives up: later results are refused.
  public func abandon() { state.withLock { $0.isAbandoned = true } }
}
