import Synchronization

/// Lets one task wait until another one calls `signal`, until a timeout, or until the task is
/// cancelled. A call that comes before the wait ends it at once.
final class Wakeup: Sendable {
  private struct State {
    var isSignaled = false
    var waiter: CheckedContinuation<Void, Never>?
  }

  private let state = Mutex(State())

  func signal() {
    let waiter = state.withLock { state in
      state.isSignaled = state.waiter == nil
      defer { state.waiter = nil }
      return state.waiter
    }
    waiter?.resume()
  }

  /// Waits. Without `limit` there is no timeout.
  func wait(within limit: Duration? = nil) async {
    let timer = limit.map { limit in
      Task {
        // The sleep ends early only if the wait is over.
        try? await Task.sleep(for: limit)
        if !Task.isCancelled { self.signal() }
      }
    }
    defer { timer?.cancel() }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isOver = state.withLock { state in
          if state.isSignaled || Task.isCancelled {
            state.isSignaled = false
            return true
          }
          state.waiter = continuation
          return false
        }
        if isOver { continuation.resume() }
      }
    } onCancel: {
      signal()
    }
  }
}
