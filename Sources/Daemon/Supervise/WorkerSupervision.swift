import Lifecycle

/// Reports what happens to workers to the parts that supervise them: restarts, dependencies, health. Belongs to
/// the loop's thread.
final class WorkerSupervision {
  private let workers: WorkerRegistry
  private let restarts: RestartSupervisor
  private let starter: DependencyStarter
  private let reloads: WorkerReloads
  private let liveness: LivenessSupervisor
  private let listening: ListeningSockets

  init(
    workers: WorkerRegistry, restarts: RestartSupervisor, starter: DependencyStarter,
    reloads: WorkerReloads, liveness: LivenessSupervisor, listening: ListeningSockets
  ) {
    self.workers = workers
    self.restarts = restarts
    self.starter = starter
    self.reloads = reloads
    self.liveness = liveness
    self.listening = listening
  }

  /// At each transition of a worker that is in the registry.
  func supervise(_ transition: Transition) {
    let id = transition.worker
    restarts.record(transition)
    if transition.to == .terminated, transition.from != .terminated {
      if case .requested = transition.cause { workers[id]?.stored?.wasStopped() }
      reloads.workerHasEnded(id, transition.cause)
    }
    if let worker = workers[id] { liveness.followLiveness(of: worker, transition) }
    starter.advance()
  }

  func personAsks(_ verb: Request.Verb, _ id: WorkerID) {
    restarts.personAsks(verb, id)
    if verb == .stop || verb == .terminate {
      starter.stopWaiting(id, "\(id) was stopped before it was started")
    }
  }

  /// The configuration was read again.
  func restartRulesChanged(_ id: WorkerID) {
    restarts.termsChanged(of: id)
    guard let worker = workers[id] else { return }
    liveness.followLiveness(of: worker, nil)
    // The next look uses the ports of health checks as they are then.
    worker.traffic = nil
  }

  /// The configuration no longer declares it.
  func forgetPlans(of id: WorkerID) {
    restarts.forgetPlans(of: id)
    starter.stopWaiting(id, "\(id) is no longer in the configuration")
  }

  /// There is no worker of that name any more.
  func removeWorker(_ id: WorkerID) {
    // Sockets that were still being opened when it was no longer declared.
    if let worker = workers[id] { listening.closeListeners(of: worker) }
    workers[id] = nil
    restarts.remove(id)
  }
}
