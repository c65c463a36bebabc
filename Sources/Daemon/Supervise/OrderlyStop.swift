import Lifecycle

/// The functions of the daemon that `OrderlyStop` uses.
protocol OrderlyStopHost: AnyObject {
  /// Workers that run, sleep, start or end.
  var alive: [WorkerID] { get }
  /// The workers that this one needs.
  func needs(of id: WorkerID) -> [WorkerID]
  /// Another program supervises it, and ends it.
  func isExternal(_ id: WorkerID) -> Bool
  func stop(_ id: WorkerID, then answer: @escaping (Answer) -> Void)
}

/// The daemon's end: every worker is asked to end, those that others depend on after these. Belongs to the loop's
/// thread.
final class OrderlyStop {
  private unowned let host: any OrderlyStopHost
  private var asked: Set<WorkerID> = []
  /// Those that won't end.
  private var unstoppable: Set<WorkerID> = []

  /// The host isn't kept alive.
  init(_ host: any OrderlyStopHost) { self.host = host }

  /// Asks for the end of all that no other worker needs any more; called again as they end.
  func advance() {
    let alive = host.alive
    // One that can't be killed doesn't keep the others.
    let needed = Set(alive.filter { !unstoppable.contains($0) }.flatMap { host.needs(of: $0) })
    for id in alive.sorted() where !needed.contains(id) && !host.isExternal(id) {
      guard asked.insert(id).inserted else { continue }
      host.stop(id) { [unowned self] answer in
        guard answer.code == .failed else { return }
        unstoppable.insert(id)
        advance()
      }
    }
  }
}

/// The daemon's implementation for `OrderlyStop`.
final class OrderlyStopOfDaemon: OrderlyStopHost {
  private let workers: WorkerRegistry
  private let requests: WorkerRequests

  init(_ workers: WorkerRegistry, _ requests: WorkerRequests) {
    self.workers = workers
    self.requests = requests
  }

  var alive: [WorkerID] { workers.keys.filter(requests.isAlive) }

  func needs(of id: WorkerID) -> [WorkerID] {
    (workers[id]?.configuration.dependsOn ?? []).map { WorkerID($0.worker) }
  }

  func isExternal(_ id: WorkerID) -> Bool { workers[id]?.external != nil }

  func stop(_ id: WorkerID, then answer: @escaping (Answer) -> Void) {
    requests.request(.stop, id, then: answer)
  }
}
