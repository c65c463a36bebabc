import Lifecycle

/// Workers of `run` that have ended are still shown, a hundred at most: a script may `run` under new names for
/// years. Belongs to the loop's thread.
final class EndedRuns {
  static let limit = 100

  private let driver: EngineDriver
  private let workers: WorkerRegistry
  private let requests: WorkerRequests
  private let supervision: WorkerSupervision
  private let limit: Int
  /// The latest last.
  private var ids: [WorkerID] = []

  init(
    driver: EngineDriver, workers: WorkerRegistry, requests: WorkerRequests,
    supervision: WorkerSupervision, limit: Int = EndedRuns.limit
  ) {
    self.driver = driver
    self.workers = workers
    self.requests = requests
    self.supervision = supervision
    self.limit = limit
  }

  /// - Parameter latest: has just ended.
  func forgetOldRuns(after latest: WorkerID) {
    ids.removeAll { $0 == latest }
    ids.append(latest)
    guard ids.count > limit else { return }
    let oldest = ids.removeFirst()
    // It may have been run again since; then it comes back at its next end. Or the configuration has it now.
    guard workers[oldest]?.isDeclared == false, !requests.isAlive(oldest) else { return }
    supervision.removeWorker(oldest)
    driver.send(.removed(oldest))
  }
}
