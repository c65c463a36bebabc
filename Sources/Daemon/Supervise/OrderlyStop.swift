import Lifecycle
import Policy

/// The functions of the daemon that `OrderlyStop` uses.
protocol OrderlyStopHost: AnyObject {
  /// Workers that run, sleep, start or end.
  var alive: [WorkerID] { get }
  /// The workers that this one needs.
  func needs(of id: WorkerID) -> [WorkerID]
  /// Another program supervises it, and ends it.
  func isExternal(_ id: WorkerID) -> Bool
  func stop(_ id: WorkerID, then answer: @escaping (Answer) -> Void)
  func log(_ priority: DaemonLog.Priority, _ text: String)
}

/// The daemon's end: every worker is asked to end, those that others depend on after these. A worker that couldn't be
/// ended (its image can't be read, SIGKILL has no effect) is asked again after a growing pause, because the daemon
/// ends after its last worker. Belongs to the loop's thread.
final class OrderlyStop {
  private unowned let host: any OrderlyStopHost
  private let timers: any Timers
  private var asked: Set<WorkerID> = []
  /// How often the stop of a worker has failed.
  private var failures: [WorkerID: Int] = [:]
  /// Those that can't be ended for now.
  private var unstoppable: Set<WorkerID> = []

  /// Before the next request.
  static let pauses = Backoff(max: .seconds(30))

  /// The host isn't kept alive.
  init(_ host: any OrderlyStopHost, timers: any Timers) {
    self.host = host
    self.timers = timers
  }

  /// Asks for the end of all that no other worker needs any more; called again as they end.
  func advance() {
    let alive = host.alive
    // One that can't be killed doesn't keep the others.
    let needed = Set(alive.filter { !unstoppable.contains($0) }.flatMap { host.needs(of: $0) })
    for id in alive.sorted() where !needed.contains(id) && !host.isExternal(id) {
      guard asked.insert(id).inserted else { continue }
      host.stop(id) { [unowned self] in
        if $0.code != .done { hasFailed(id, $0) }
      }
    }
  }

  private func hasFailed(_ id: WorkerID, _ answer: Answer) {
    let pause = Self.pauses.delay(afterRestarts: failures[id, default: 0])
    failures[id, default: 0] += 1
    host.log(.error, "\(answer.text); it is asked to stop again in \(pause.spoken)")
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

/// The daemon's implementation for `OrderlyStop`.
final class OrderlyStopOfDaemon: OrderlyStopHost {
  private let workers: WorkerRegistry
  private let requests: WorkerRequests
  private let log: DaemonLog

  init(_ workers: WorkerRegistry, _ requests: WorkerRequests, log: DaemonLog) {
    self.workers = workers
    self.requests = requests
    self.log = log
  }

  var alive: [WorkerID] { workers.keys.filter(requests.isAlive) }

  func needs(of id: WorkerID) -> [WorkerID] {
    (workers[id]?.configuration.dependsOn ?? []).map { WorkerID($0.worker) }
  }

  func isExternal(_ id: WorkerID) -> Bool { workers[id]?.external != nil }

  func stop(_ id: WorkerID, then answer: @escaping (Answer) -> Void) {
    requests.request(.stop, id, then: answer)
  }

  func log(_ priority: DaemonLog.Priority, _ text: String) { log(priority, text) }
}
