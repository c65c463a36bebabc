import Lifecycle

/// The workers that the daemon has, by name. Belongs to the loop's thread.
final class WorkerRegistry: Sequence {
  private var workers: [WorkerID: WorkerUnit] = [:]
  /// From the directive to launch one until the outcome; see `WorkerLauncher`.
  var launching: Set<WorkerID> = []

  /// Setting `nil` removes it.
  subscript(id: WorkerID) -> WorkerUnit? {
    get { workers[id] }
    set { workers[id] = newValue }
  }

  /// In no order.
  var values: some Collection<WorkerUnit> { workers.values }
  var keys: some Collection<WorkerID> { workers.keys }
  var count: Int { workers.count }

  func removeAll() { workers.removeAll() }

  func makeIterator() -> some IteratorProtocol<(key: WorkerID, value: WorkerUnit)> {
    workers.makeIterator()
  }
}
