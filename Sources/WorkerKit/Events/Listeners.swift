import Synchronization

/// The listeners of events: WorkerKit's own caches, the delegate, loops over `events`, and
/// subscribed objects.
///
/// Each listener gets the events in order, one after another, and doesn't wait for the other
/// listeners: one that never returns doesn't keep caches from being emptied.
final class Listeners: Sendable {
  private struct State {
    var delegate: AsyncStream<EventDelivery>.Continuation?
    var mailboxes: [EventMailbox] = []
    var shedders: AsyncStream<EventDelivery>.Continuation?
    var objects: AsyncStream<EventDelivery>.Continuation?
  }

  private let state = Mutex(State())
  let subscribers = Subscribers()

  deinit {
    state.withLock {
      $0.delegate?.finish()
      $0.shedders?.finish()
      $0.objects?.finish()
    }
  }

  /// Replaces the delegate. The new one gets all later events.
  func setDelegate(_ delegate: any WorkerDelegate) {
    let stream = Self.serially { await $0.deliver(to: delegate) }
    let former = state.withLock { state in
      defer { state.delegate = stream }
      return state.delegate
    }
    // The former delegate still gets the events from before.
    former?.finish()
  }

  func add(_ mailbox: EventMailbox) { state.withLock { $0.mailboxes.append(mailbox) } }

  func remove(_ mailbox: EventMailbox) {
    state.withLock { $0.mailboxes.removeAll { $0 === mailbox } }
  }

  /// Delivers an event to all listeners.
  ///
  /// - Parameter whenHandled: called when all listeners have handled the event.
  func deliver(
    _ event: WorkerEvent, deadline: ContinuousClock.Instant? = nil,
    whenHandled: @escaping @Sendable () async -> Void = {}
  ) {
    state.withLock { state in
      let shedders =
        state.shedders ?? Self.serially { [subscribers] in subscribers.shed(for: $0) }
      let objects =
        state.objects ?? Self.serially { [subscribers] in await subscribers.deliver($0) }
      state.shedders = shedders
      state.objects = objects
      let delivery = EventDelivery(
        event, deadline: deadline,
        listeners: 2 + (state.delegate == nil ? 0 : 1) + state.mailboxes.count,
        whenHandled: whenHandled)
      shedders.yield(delivery)
      objects.yield(delivery)
      state.delegate?.yield(delivery)
      for mailbox in state.mailboxes { mailbox.put(delivery) }
    }
  }

  private static func serially(
    _ body: @escaping @Sendable (WorkerEvent) async -> Void
  ) -> AsyncStream<EventDelivery>.Continuation {
    let (stream, continuation) = AsyncStream.makeStream(of: EventDelivery.self)
    // A request to free memory, or the last event before a suspension, shouldn't wait for other
    // work.
    Task.detached(priority: .high) {
      for await delivery in stream {
        await Worker.$deadline.withValue(delivery.deadline) { await body(delivery.event) }
        delivery.didHandle()
      }
    }
    return continuation
  }
}
