import Synchronization

/// Events that wait for one loop over `Worker.events`.
final class EventMailbox: Sendable {
  private struct State {
    var waiting: [EventDelivery] = []
    /// The event that the loop's body handles now.
    var current: EventDelivery?
    var reader: CheckedContinuation<WorkerEvent?, Never>?
    var isClosed = false
  }

  private let state = Mutex(State())

  func put(_ delivery: EventDelivery) {
    let reader = state.withLock { state -> CheckedContinuation<WorkerEvent?, Never>?? in
      if state.isClosed { return .none }
      guard let reader = state.reader.take() else {
        state.waiting.append(delivery)
        return .some(nil)
      }
      state.current = delivery
      return reader
    }
    switch reader {
    case .none: delivery.didHandle()
    case .some(let reader): reader?.resume(returning: delivery.event)
    }
  }

  /// Returns the next event. The caller has handled the event before. The result is `nil` when the
  /// loop must end.
  func next() async -> WorkerEvent? {
    removeCurrent()?.didHandle()
    return await withTaskCancellationHandler {
      await withCheckedContinuation { wait(with: $0) }
    } onCancel: {
      close()
    }
  }

  private func removeCurrent() -> EventDelivery? { state.withLock { $0.current.take() } }

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
      let delivery = state.waiting.removeFirst()
      state.current = delivery
      return delivery.event
    }
    if let event { reader.resume(returning: event) }
  }

  /// Ends the loop's delivery: no answer waits for it any more.
  func close() {
    let (deliveries, reader) = state.withLock { state in
      defer {
        state = State()
        state.isClosed = true
      }
      return (state.waiting + (state.current.map { [$0] } ?? []), state.reader)
    }
    for delivery in deliveries { delivery.didHandle() }
    reader?.resume(returning: nil)
  }
}
