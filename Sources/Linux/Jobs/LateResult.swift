import Synchronization

/// Carries a result from a thread that may be late to a receiver that may have given up. A result without a
/// waiting receiver is destroyed on the thread that made it: closing its files may hang, too.
public final class LateResult<Value: Sendable>: Sendable {
  private struct State {
    var value: Value?
    var isAbandoned = false
  }
  private let state = Mutex(State())

  public init() {}

  /// Stores the result if a receiver still waits for it; otherwise returns false.
  public func set(_ value: Value) -> Bool {
    state.withLock { state in
      if !state.isAbandoned { state.value = value }
      return !state.isAbandoned
    }
  }

  /// nil: there is none yet.
  public func take() -> Value? {
    state.withLock { state in
      defer { state.value = nil }
      return state.value
    }
  }

  public func abandon() { state.withLock { $0.isAbandoned = true } }
}
