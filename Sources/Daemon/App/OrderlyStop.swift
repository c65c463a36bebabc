import Lifecycle
import Policy

// All workers are ended when the daemon ends. A worker that others depend on is asked after them. A
// worker that couldn't be ended (its image can't be read, SIGKILL has no effect) is asked again
// after a growing pause, because the daemon ends after its last worker.
extension DaemonEnd {
  private static let pauses = Backoff(max: .seconds(30))

  /// The pause before a worker whose stop or release has failed is asked again.
  func pauseAfterFailure(of id: WorkerID) -> Duration {
    defer { failures[id, default: 0] += 1 }
    return Self.pauses.delay(afterRestarts: failures[id, default: 0])
  }

  /// Asks all workers to end that no other worker needs any more. It is called again as they end.
  func stopWorkers() {
    let alive = workers.keys.filter(requests.isAlive)
    // A worker that can't be killed doesn't delay the workers that it depends on.
    let needed = Set(alive.filter { !unstoppable.contains($0) }.flatMap(needs))
    // Another program supervises an external worker, and ends it.
    for id in alive.sorted() where !needed.contains(id) && workers[id]?.external == nil {
      guard asked.insert(id).inserted else { continue }
      requests.request(.stop, id) { [unowned self] in
        if $0.code != .done { stopDidFail(id, $0) }
      }
    }
  }

  private func needs(of id: WorkerID) -> [WorkerID] {
    (workers[id]?.configuration.dependsOn ?? []).map { WorkerID($0.worker) }
  }

  private func stopDidFail(_ id: WorkerID, _ answer: Answer) {
    let pause = pauseAfterFailure(of: id)
    log(.error, "\(answer.text); it is asked to stop again in \(pause.text)")
    timers.after(pause) { [weak self] in
      self?.asked.remove(id)
      self?.stopWorkers()
    }
    guard answer.code == .failed else { return }
    unstoppable.insert(id)
    stopWorkers()
  }
}
