import Synchronization

/// An event that is delivered to its listeners. `whenHandled` runs when all of them have handled
/// it.
final class Receipt: Sendable {
  let event: WorkerEvent
  let deadline: ContinuousClock.Instant?
  private let open: Atomic<Int>
  private let whenHandled: @Sendable () async -> Void

  /// - Parameter listeners: The number of calls of `handled` to expect, 1 or more.
  init(
    _ event: WorkerEvent, deadline: ContinuousClock.Instant?, listeners: Int,
    whenHandled: @escaping @Sendable () async -> Void
  ) {
    self.event = event
    self.deadline = deadline
    self.whenHandled = whenHandled
    open = Atomic(listeners)
  }

  /// Records that one of the listeners has handled the event.
  func handled() {
    guard open.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 else { return }
    Task { await whenHandled() }
  }
}
