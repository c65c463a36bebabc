import Synchronization

/// An event that is delivered to its listeners. `whenHandled` runs when all of them have handled
/// it.
final class EventDelivery: Sendable {
  let event: WorkerEvent
  let deadline: ContinuousClock.Instant?
  private let unhandled: Atomic<Int>
  private let whenHandled: @Sendable () async -> Void

  /// - Parameter listeners: The number of calls of `didHandle` to expect, 1 or more.
  init(
    _ event: WorkerEvent, deadline: ContinuousClock.Instant?, listeners: Int,
    whenHandled: @escaping @Sendable () async -> Void
  ) {
    self.event = event
    self.deadline = deadline
    self.whenHandled = whenHandled
    unhandled = Atomic(listeners)
  }

  /// Records that one of the listeners has handled the event.
  func didHandle() {
    guard unhandled.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 else { return }
    Task { await whenHandled() }
  }
}
