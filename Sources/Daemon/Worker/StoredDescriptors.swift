import Lifecycle
import Linux
import Policy
import Supervision

// `fdstore:`, the file descriptor store of sd_notify(3). What a worker has stored outlives its runs, and
// is handed to the next one behind the sockets of `listen`. It doesn't outlive the daemon.

extension Daemon {
  /// From a person's stop to the removal: `dormouse restart` stops and starts again.
  private static let storePatience = Duration.seconds(10)

  func keep(_ request: StoreRequest, of runtime: WorkerRuntime) {
    let limit = runtime.configuration.fdstore
    switch request {
    case .remove(let name): runtime.store?.remove(name: name)
    case .store(let descriptors, let name, let isPolled):
      let id = runtime.id
      let store =
        runtime.store
        ?? DescriptorStore { [mailbox] number in mailbox.post { $0.hungUp(number, of: id) } }
      runtime.store = store
      let refused = store.add(descriptors, name: name, isPolled: isPolled, limit: limit)
      report(refused, name, runtime)
    }
  }

  /// Each once a run.
  private func report(
    _ refused: DescriptorStore.Refused, _ name: String, _ runtime: WorkerRuntime
  ) {
    if refused.noRoom > 0, !runtime.hasFullStore {
      runtime.hasFullStore = true
      log(
        .warning,
        "\(runtime.id): its store of descriptors is full: \(refused.noRoom) called \(name) were closed; "
          + "fdstore is \(runtime.configuration.fdstore)")
    }
    if refused.unsafe > 0, !runtime.hasUnsafeStore {
      runtime.hasUnsafeStore = true
      log(
        .warning,
        "\(runtime.id): \(refused.unsafe) descriptors called \(name) were closed: only sockets, pipes, "
          + "memfds and anonymous inodes (eventfd, timerfd) can be stored")
    }
  }

  private func hungUp(_ number: UInt64, of id: WorkerID) {
    guard let name = workers[id]?.store?.hungUp(number) else { return }
    log(.info, "\(id): the stored descriptor \(name) was hung up, and is closed")
  }

  /// For a launch. The limit may have been lowered since.
  func storedDescriptors(of runtime: WorkerRuntime) -> [DescriptorStore.Entry] {
    guard let store = runtime.store else { return [] }
    let dropped = store.keep(atMost: runtime.configuration.fdstore)
    if dropped > 0 {
      log(
        .notice, "\(runtime.id): \(dropped) of its stored descriptors were closed: fdstore is less")
    }
    return store.entries
  }

  /// A person has stopped it, and it isn't started again at once.
  func dropStore(of runtime: WorkerRuntime) {
    guard let store = runtime.store else { return }
    loop.after(Self.storePatience) { [unowned self] in
      guard runtime.store === store, runtime.process == nil, runtime.launching == nil,
        engine.state(of: runtime.id) ?? .terminated == .terminated
      else { return }
      runtime.store = nil
      log(.info, "\(runtime.id): its stored descriptors were closed: it was stopped")
    }
  }
}
