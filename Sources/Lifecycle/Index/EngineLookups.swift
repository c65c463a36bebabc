import Policy

extension Engine {
  /// As last measured; zero where nobody has, or there is no such worker. For who asks often, and
  /// has no use for a whole snapshot.
  public func footprint(of worker: WorkerID) -> ByteCount {
    index(of: worker).map { workers[$0].footprint } ?? .zero
  }

  /// Their names, in order.
  public var workerIDs: [WorkerID] { workers.map(\.id) }

  /// Those that get processor time, by name.
  public var runningWorkers: [WorkerID] { workers.running }

  public func profile(of worker: WorkerID) -> WorkerProfile? {
    index(of: worker).map { workers[$0].profile }
  }
}
