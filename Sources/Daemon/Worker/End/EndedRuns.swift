import Lifecycle

/// The functions of the daemon that `EndedRuns` uses.
protocol EndedRunsHost: AnyObject {
  /// It has no entry in the configuration, and doesn't run.
  func mayBeForgotten(_ id: WorkerID) -> Bool
  func forget(_ id: WorkerID)
}

/// Workers of `run` that have ended are still shown, a hundred at most: a script may `run` under new names for
/// years. Belongs to the loop's thread.
final class EndedRuns {
  static let limit = 100

  private let host: any EndedRunsHost
  private let limit: Int
  /// The latest last.
  private var ids: [WorkerID] = []

  init(_ host: any EndedRunsHost, limit: Int = EndedRuns.limit) {
    self.host = host
    self.limit = limit
  }

  /// - Parameter latest: has just ended.
  func forgetOldRuns(after latest: WorkerID) {
    ids.removeAll { $0 == latest }
    ids.append(latest)
    guard ids.count > limit else { return }
    let oldest = ids.removeFirst()
    // It may have been run again since; then it comes back at its next end.
    if host.mayBeForgotten(oldest) { host.forget(oldest) }
  }
}

/// The daemon's implementation for `EndedRuns`.
final class EndedRunsOfDaemon: EndedRunsHost {
  private let driver: EngineDriver
  private let workers: WorkerRegistry
  private let requests: WorkerRequests
  private let supervision: WorkerSupervision

  init(
    driver: EngineDriver, workers: WorkerRegistry, requests: WorkerRequests,
    supervision: WorkerSupervision
  ) {
    self.driver = driver
    self.workers = workers
    self.requests = requests
    self.supervision = supervision
  }

  func mayBeForgotten(_ id: WorkerID) -> Bool {
    workers[id]?.isDeclared == false && !requests.isAlive(id)
  }

  func forget(_ id: WorkerID) {
    supervision.removeWorker(id)
    driver.send(.removed(id))
  }
}
