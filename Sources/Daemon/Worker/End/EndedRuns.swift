import Lifecycle

/// Removes ended workers of `run` from the registry. At most 100 of them are still shown, since a
/// script may use `run` with new names for years. Belongs to the loop's thread.
final class EndedRuns {
  static let limit = 100

  private let requests: WorkerRequests
  private let supervision: WorkerSupervision
  private let limit: Int
  /// The worker that ended last is the last one.
  private var ids: [WorkerID] = []

  init(requests: WorkerRequests, supervision: WorkerSupervision, limit: Int = EndedRuns.limit) {
    self.requests = requests
    self.supervision = supervision
    self.limit = limit
  }

  /// - Parameter latest: the worker that has just ended.
  func forgetOldRuns(after latest: WorkerID) {
    ids.removeAll { $0 == latest }
    ids.append(latest)
    guard ids.count > limit else { return }
    let oldest = ids.removeFirst()
    // The worker may have been run again since. Then it is added again at its next end. Or the
    // configuration may have declared it since.
    guard supervision.workers[oldest]?.isDeclared == false, !requests.isAlive(oldest) else {
      return
    }
    supervision.removeWorker(oldest)
    requests.driver.send(.removed(oldest))
  }
}
