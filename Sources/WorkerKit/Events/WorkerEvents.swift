/// The events of a worker's life cycle, for a `for await` loop.
///
/// ```swift
/// for await event in Worker.shared.events {
///   if case .didEnterBackground = event { await journal.save() }
/// }
/// ```
///
/// An event counts as handled when the loop asks for the next one, or ends: the daemon gets its
/// answer then. Do the work in the loop's body, and don't start a task that the loop doesn't wait
/// for.
///
/// Any number of loops may run. Each gets all events from its start on, and events that arrive
/// while its body runs are queued. A loop also ends when its task is cancelled.
public struct WorkerEvents: AsyncSequence, Sendable {
  public typealias Element = WorkerEvent
  public typealias Failure = Never

  let listeners: Listeners

  public func makeAsyncIterator() -> Iterator { Iterator(registration: Registration(listeners)) }

  /// Reads the events of one loop. Two tasks mustn't read one iterator at the same time.
  public struct Iterator: AsyncIteratorProtocol {
    let registration: Registration

    /// Reports the last event as handled, and waits for the next one; `nil` if the task was
    /// cancelled.
    public mutating func next() async -> WorkerEvent? { await registration.mailbox.next() }

    public mutating func next(
      isolation actor: isolated (any Actor)?
    ) async -> WorkerEvent? {
      await registration.mailbox.next()
    }
  }

  /// Ends the delivery when the iterator is freed.
  final class Registration: Sendable {
    let mailbox = EventMailbox()
    private let listeners: Listeners

    init(_ listeners: Listeners) {
      self.listeners = listeners
      listeners.add(mailbox)
    }

    deinit {
      listeners.remove(mailbox)
      mailbox.close()
    }
  }
}
