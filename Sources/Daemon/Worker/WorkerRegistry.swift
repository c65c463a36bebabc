import Lifecycle

/// The workers that the daemon has, by name. Belongs to the loop's thread.
final class WorkerRegistry: Sequence {
  private var workers: [WorkerID: WorkerRuntime] = [:]

  /// Setting `nil` removes it.
  subscript(id: WorkerID) -> WorkerRuntime? {
    get { workers[id] }
    set { workers[id] = newValue }
  }

  /// In no order.
  var values: some Collection<WorkerRuntime> { workers.values }
  var keys: some Collection<WorkerID> { workers.keys }
  var count: Int { workers.count }

  func makeIterator() -> some IteratorProtocol<(key: WorkerID, value: WorkerRuntime)> {
    workers.makeIterator()
  }
}
