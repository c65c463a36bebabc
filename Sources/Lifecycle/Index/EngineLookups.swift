import Policy

extension Engine {
  /// The last measured footprint; zero if there is no measurement or no such worker. For callers that
  /// ask often and don't need a whole snapshot.
  public func footprint(of worker: WorkerID) -> ByteCount {
    index(of: worker).map { workers[$0].footprint } ?? .zero
  }

  /// Their names, in order.
  public var workerIDs: [WorkerID] { workers.map(\.id) }

  /// The workers that get processor time, by name.
  public var runningWorkers: [WorkerID] { workers.running }

  public func profile(of worker: WorkerID) -> WorkerProfile? {
    index(of: worker).map { workers[$0].profile }
  }
}

extension WorkerTable {
  fileprivate var running: [WorkerID] { indices.filter { self[$0].state.runs }.map { self[$0].id } }
}
