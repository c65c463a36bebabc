import Lifecycle
import Supervision

/// The file descriptor store of one worker (`fdstore:`, sd_notify(3)). Stored descriptors outlive
/// the worker's runs, and are passed to the next run after the sockets of `listen`. They don't
/// outlive the daemon. Belongs to the loop's thread.
final class DescriptorStoring {
  /// The time between the operator's stop and the removal of the descriptors: `dormouse restart`
  /// stops the worker and starts it again.
  static let removalDelay = Duration.seconds(10)

  private let timers: any Timers
  private let handle: WorkerHandle
  private let workers: WorkerRegistry
  /// Makes a callback for the store's thread. The argument is called on the loop when that thread
  /// calls the returned closure.
  private let returning: (@escaping (UInt64) -> Void) -> @Sendable (UInt64) -> Void
  private var store: DescriptorStore?
  /// The warnings that this run has logged.
  private var logged: Set<KeyPath<DescriptorStore.Refused, Int>> = []

  init(
    _ handle: WorkerHandle, timers: any Timers, workers: WorkerRegistry,
    returning: @escaping (@escaping (UInt64) -> Void) -> @Sendable (UInt64) -> Void
  ) {
    self.timers = timers
    self.handle = handle
    self.workers = workers
    self.returning = returning
  }

  /// The current value of `fdstore`.
  private var limit: Int { handle.worker?.configuration.fdstore ?? 0 }

  /// The worker doesn't run, and isn't being started.
  private var isDown: Bool {
    guard let worker = handle.worker else { return true }
    return worker.process == nil && !workers.launching.contains(handle.id)
      && handle.state ?? .terminated == .terminated
  }

  /// Handles a request of the worker.
  func keep(_ request: StoreRequest) {
    switch request {
    case .remove(let name): store?.remove(name: name)
    case .store(let descriptors, let name, let isPolled):
      let store =
        store ?? DescriptorStore(hungUp: returning { [weak self] in self?.hungUp($0) })
      self.store = store
      report(store.add(descriptors, name: name, isPolled: isPolled, limit: limit), name)
    }
  }

  /// The descriptors for the next run. The limit may have been lowered since they were stored.
  func entriesForLaunch() -> [DescriptorStore.Entry] {
    logged = []
    guard let store else { return [] }
    let dropped = store.keep(atMost: limit)
    if dropped > 0 {
      handle.log(.notice, "\(dropped) of its stored descriptors closed: fdstore was lowered")
    }
    return store.entries
  }

  /// The operator has stopped the worker. If it isn't started again soon, the descriptors are
  /// closed.
  func didStop() {
    guard let stopped = store else { return }
    timers.after(Self.removalDelay) { [weak self] in
      guard let self, store === stopped, isDown else { return }
      store = nil
      handle.log(.info, "its stored descriptors closed: it was stopped")
    }
  }

  /// Logs what couldn't be stored; each warning once a run.
  private func report(_ refused: DescriptorStore.Refused, _ name: String) {
    let reasons: [(count: KeyPath<DescriptorStore.Refused, Int>, text: String)] = [
      (\.noRoom, "the store is full (fdstore: \(limit))"),
      (
        \.unsafe,
        "only sockets, pipes, memfds and anonymous inodes (eventfd, timerfd) can be stored"
      ),
    ]
    for (count, text) in reasons {
      let closed = refused[keyPath: count]
      if closed > 0, logged.insert(count).inserted {
        handle.log(.warning, "\(closed) descriptors named \(name) closed: \(text)")
      }
    }
  }

  private func hungUp(_ number: UInt64) {
    guard let name = store?.didHangUp(number) else { return }
    handle.log(.info, "stored descriptor \(name) closed: the other end hung up")
  }
}
