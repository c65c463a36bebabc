import Synchronization

/// An event on its way to its listeners. When all of them have handled it, it is answered.
final class Receipt: Sendable {
  let event: WorkerEvent
  let deadline: ContinuousClock.Instant?
  private let open: Atomic<Int>
  private let whenHandled: @Sendable () async -> Void

  /// - Parameter listeners: how often `handled` will be called, 1 or more.
  init(
    _ event: WorkerEvent, deadline: ContinuousClock.Instant?, listeners: Int,
    whenHandled: @escaping @Sendable () async -> Void
  ) {
    self.event = event
    self.deadline = deadline
    self.whenHandled = whenHandled
    open = Atomic(listeners)
  }

  /// One of the listeners has handled it.
  func handled() {
    guard open.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 else { return }
    Task { await whenHandled() }
  }
}
