import Policy

extension Engine {
  /// How much of the worker's footprint is in swap or in the image of a trim, by the last
  /// measurement; zero if there is no such worker.
  public func swapped(of worker: WorkerID) -> ByteCount {
    index(of: worker).flatMap { workers[$0].run.trim?.swapped } ?? .zero
  }

  /// The part of the worker's footprint that is in RAM, by the last measurement.
  public func resident(of worker: WorkerID) -> ByteCount {
    index(of: worker).map { workers[$0].resident } ?? .zero
  }

  /// The last measured footprint. Zero: there is no measurement, or no such worker. For callers
  /// that ask often and don't need a whole snapshot.
  public func footprint(of worker: WorkerID) -> ByteCount {
    index(of: worker).map { workers[$0].footprint } ?? .zero
  }

  /// The names of all workers, sorted.
  public var workerIDs: [WorkerID] { workers.map(\.id) }

  /// The workers that get processor time, sorted by name.
  public var runningWorkers: [WorkerID] {
    workers.indices.filter { workers[$0].state.runs }.map { workers[$0].id }
  }

  /// The worker's profile. `nil`: there is no such worker.
  public func profile(of worker: WorkerID) -> WorkerProfile? {
    index(of: worker).map { workers[$0].profile }
  }
}
