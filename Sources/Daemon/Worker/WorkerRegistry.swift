import Lifecycle

/// The workers of the daemon, by name. Belongs to the loop's thread.
final class WorkerRegistry: Sequence {
  private var workers: [WorkerID: WorkerUnit] = [:]
  /// The workers whose launch was begun and has no outcome yet; see `WorkerLauncher`.
  var launching: Set<WorkerID> = []

  /// Setting nil removes the worker.
  subscript(id: WorkerID) -> WorkerUnit? {
    get { workers[id] }
    set { workers[id] = newValue }
  }

  /// The workers, in no order.
  var values: some Collection<WorkerUnit> { workers.values }
  var keys: some Collection<WorkerID> { workers.keys }
  var count: Int { workers.count }

  func removeAll() { workers.removeAll() }

  func makeIterator() -> some IteratorProtocol<(key: WorkerID, value: WorkerUnit)> {
    workers.makeIterator()
  }
}
