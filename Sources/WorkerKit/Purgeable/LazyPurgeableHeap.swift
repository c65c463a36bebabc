import Synchronization

/// A worker's purgeable memory, which is created when it is first used.
final class LazyPurgeableHeap: Sendable {
  private let heap = Mutex<(isTried: Bool, heap: PurgeableHeap?)>((false, nil))

  /// Returns the heap, and creates it at the first call. The result is `nil` if it can't be
  /// created.
  ///
  /// - Parameter connection: The connection that offers a new heap to the daemon.
  func make(_ connection: Connection?) -> PurgeableHeap? {
    let (made, isNew) = heap.withLock { state in
      if state.isTried { return (state.heap, false) }
      state = (true, PurgeableMapping().map { PurgeableHeap($0) })
      return (state.heap, true)
    }
    if isNew, let made, made.file >= 0 { connection?.offer(made) }
    return made
  }

  private var existing: PurgeableHeap? { heap.withLock { $0.heap } }

  func didDisconnect() { existing?.didDisconnect() }
}

extension LazyPurgeableHeap: Shedder {
  func shed(for event: WorkerEvent) {
    guard let heap = existing else { return }
    switch event {
    case .didReceiveMemoryWarning: heap.discardAll()
    // The daemon purges memory that it has a descriptor of when it needs it, whether the worker
    // sleeps or not.
    case .didEnterBackground: if heap.file < 0 { heap.discardAll() }
    default: break
    }
  }
}
