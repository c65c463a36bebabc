import Lifecycle

/// Reports what happens to workers to the classes that supervise them: restarts, dependencies,
/// health. It belongs to the event loop's thread.
struct WorkerSupervision {
  let workers: WorkerRegistry
  let restarts: RestartSupervisor
  let starter: DependencyStarter
  let reloads: WorkerReloads
  let liveness: LivenessSupervisor
  let listening: ListeningSockets

  /// Handles a transition of a worker that is in the registry. Call it at each.
  func supervise(_ transition: Transition) {
    let id = transition.worker
    restarts.record(transition)
    if transition.to == .terminated, transition.from != .terminated {
      if case .requested = transition.cause { workers[id]?.stored?.didStop() }
      reloads.didEnd(id, transition.cause)
    }
    if let worker = workers[id] { liveness.followLiveness(of: worker, transition) }
    starter.advance()
  }

  func operatorRequested(_ verb: Request.Verb, _ id: WorkerID) {
    restarts.operatorRequested(verb, id)
    if verb == .stop || verb == .terminate {
      starter.stopWaiting(id, "\(id) was stopped before it was started")
    }
  }

  /// Applies a configuration that was read again.
  func didChangeRestartRules(_ id: WorkerID) {
    restarts.didChangeTerms(of: id)
    guard let worker = workers[id] else { return }
    liveness.followLiveness(of: worker, nil)
    // The next reading uses the ports of the new configuration's health checks.
    worker.traffic = nil
  }

  /// Cancels the plans for a worker that the configuration no longer declares.
  func forgetPlans(of id: WorkerID) {
    restarts.forgetPlans(of: id)
    starter.stopWaiting(id, "\(id) is no longer in the configuration")
  }

  /// Removes a worker from the registry.
  func removeWorker(_ id: WorkerID) {
    // Sockets may still have been opening when the worker was no longer declared.
    if let worker = workers[id] { listening.closeListeners(of: worker) }
    workers[id] = nil
    restarts.remove(id)
  }
}
