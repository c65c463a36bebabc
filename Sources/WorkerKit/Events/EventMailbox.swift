import Synchronization

/// Events that wait for one loop over `Worker.events`.
final class Mailbox: Sendable {
  private struct State {
    var waiting: [Receipt] = []
    /// The event that the loop's body handles now.
    var current: Receipt?
    var reader: CheckedContinuation<WorkerEvent?, Never>?
    var isClosed = false
  }

  private let state = Mutex(State())

  func put(_ receipt: Receipt) {
    let reader = state.withLock { state -> CheckedContinuation<WorkerEvent?, Never>?? in
      if state.isClosed { return .none }
      guard let reader = state.reader.take() else {
        state.waiting.append(receipt)
        return .some(nil)
      }
      state.current = receipt
      return reader
    }
    switch reader {
    case .none: receipt.handled()
    case .some(let reader): reader?.resume(returning: receipt.event)
    }
  }

  /// Returns the next event. The caller has handled the event before. The result is `nil` when the
  /// loop must end.
  func next() async -> WorkerEvent? {
    takeCurrent()?.handled()
    return await withTaskCancellationHandler {
      await withCheckedContinuation { wait(with: $0) }
    } onCancel: {
      close()
    }
  }

  private func takeCurrent() -> Receipt? { state.withLock { $0.current.take() } }

  private func wait(with reader: CheckedContinuation<WorkerEvent?, Never>) {
    let event = state.withLock { state -> WorkerEvent?? in
      if state.isClosed { return .some(nil) }
      if state.waiting.isEmpty {
        // Two tasks that read one iterator at the same time would share its events. That isn't
        // supported.
        precondition(state.reader == nil, "two tasks read the same iterator of Worker.events")
        state.reader = reader
        return .none
      }
      let receipt = state.waiting.removeFirst()
      state.current = receipt
      return receipt.event
    }
    if let event { reader.resume(returning: event) }
  }

  /// Ends the loop's delivery: no answer waits for it any more.
  func close() {
    let (receipts, reader) = state.withLock { state in
      defer {
        state = State()
        state.isClosed = true
      }
      return (state.waiting + (state.current.map { [$0] } ?? []), state.reader)
    }
    for receipt in receipts { receipt.handled() }
    reader?.resume(returning: nil)
  }
}
