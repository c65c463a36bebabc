import Lifecycle

/// The functions of the daemon that `WorkerSupervision` uses.
protocol SupervisionHost: AnyObject {
  /// Closes the descriptors that its runs have stored.
  func dropStore(of id: WorkerID)
  /// Performs what waits for an answer of the worker.
  func hasEnded(_ id: WorkerID, _ cause: Cause)
  /// - Parameter transition: nil: the configuration has changed.
  func followLiveness(of id: WorkerID, _ transition: Transition?)
  /// The next look uses the ports of health checks as they are then.
  func forgetTraffic(of id: WorkerID)
  /// From the registry.
  func remove(_ id: WorkerID)
}

/// Reports what happens to workers to the parts that supervise them: restarts, dependencies, health. Belongs to
/// the loop's thread.
final class WorkerSupervision {
  private let restarts: RestartSupervisor
  private let starter: DependencyStarter
  private let host: any SupervisionHost

  init(restarts: RestartSupervisor, starter: DependencyStarter, host: any SupervisionHost) {
    self.restarts = restarts
    self.starter = starter
    self.host = host
  }

  /// At each transition of a worker that is in the registry.
  func supervise(_ transition: Transition) {
    let id = transition.worker
    restarts.record(transition)
    if transition.to == .terminated, transition.from != .terminated {
      if case .requested = transition.cause { host.dropStore(of: id) }
      host.hasEnded(id, transition.cause)
    }
    host.followLiveness(of: id, transition)
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
    host.followLiveness(of: id, nil)
    host.forgetTraffic(of: id)
  }

  /// The configuration no longer declares it.
  func forgetPlans(of id: WorkerID) {
    restarts.forgetPlans(of: id)
    starter.stopWaiting(id, "\(id) is no longer in the configuration")
  }

  /// There is no worker of that name any more.
  func removeWorker(_ id: WorkerID) {
    host.remove(id)
    restarts.remove(id)
  }
}
