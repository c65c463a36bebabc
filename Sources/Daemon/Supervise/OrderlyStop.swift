import Lifecycle
import Policy

/// Ends all workers when the daemon ends. A worker that others depend on is asked after them. A
/// worker that couldn't be ended (its image can't be read, SIGKILL has no effect) is asked again
/// after a growing pause, because the daemon ends after its last worker. It belongs to the event
/// loop's thread.
final class OrderlyStop {
  private let workers: WorkerRegistry
  private let requests: WorkerRequests
  private let timers: any Timers
  private let log: DaemonLog
  private var asked: Set<WorkerID> = []
  /// By worker, how often its stop has failed.
  private var failures: [WorkerID: Int] = [:]
  /// The workers that can't be ended for now.
  private var unstoppable: Set<WorkerID> = []

  /// The pauses before a worker is asked again.
  static let pauses = Backoff(max: .seconds(30))

  init(
    _ workers: WorkerRegistry, _ requests: WorkerRequests, timers: any Timers, log: DaemonLog
  ) {
    self.workers = workers
    self.requests = requests
    self.timers = timers
    self.log = log
  }

  /// Asks all workers to end that no other worker needs any more. It is called again as they end.
  func advance() {
    let alive = workers.keys.filter(requests.isAlive)
    // A worker that can't be killed doesn't delay the workers that it depends on.
    let needed = Set(alive.filter { !unstoppable.contains($0) }.flatMap(needs))
    // Another program supervises an external worker, and ends it.
    for id in alive.sorted() where !needed.contains(id) && workers[id]?.external == nil {
      guard asked.insert(id).inserted else { continue }
      requests.request(.stop, id) { [unowned self] in
        if $0.code != .done { didFail(id, $0) }
      }
    }
  }

  private func needs(of id: WorkerID) -> [WorkerID] {
    (workers[id]?.configuration.dependsOn ?? []).map { WorkerID($0.worker) }
  }

  private func didFail(_ id: WorkerID, _ answer: Answer) {
    let pause = Self.pauses.delay(afterRestarts: failures[id, default: 0])
    failures[id, default: 0] += 1
    log(.error, "\(answer.text); it is asked to stop again in \(pause.text)")
    timers.after(pause) { [weak self] in
      guard let self else { return }
      asked.remove(id)
      advance()
    }
    guard answer.code == .failed else { return }
    unstoppable.insert(id)
    advance()
  }
}
