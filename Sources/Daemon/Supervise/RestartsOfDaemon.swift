import Lifecycle
import Policy

/// What `RestartSupervisor` gets of the daemon.
private final class RestartsOfDaemon: RestartHost {
  private unowned let daemon: Daemon

  init(_ daemon: Daemon) { self.daemon = daemon }

  var isClosing: Bool { daemon.isEnding || daemon.isLeaving }
  var pressure: PressureLevel { daemon.engine.pressure }

  func state(of id: WorkerID) -> WorkerState? { daemon.engine.state(of: id) }

  func lastExit(of id: WorkerID) -> ExitStatus? { daemon.engine.snapshot(of: id)?.lastExit }

  func terms(of id: WorkerID) -> RestartTerms? {
    daemon.workers[id].map {
      RestartTerms(
        rules: $0.configuration.restart, importance: $0.configuration.importance,
        isExternal: $0.external != nil)
    }
  }

  func start(_ id: WorkerID, then answer: @escaping (Answer) -> Void) {
    daemon.dependencyStarter.start(id, .restart, then: answer)
  }

  func log(_ priority: DaemonLog.Priority, _ text: String) { daemon.log(priority, text) }
}

extension Daemon {
  func makeRestartSupervisor() -> RestartSupervisor {
    RestartSupervisor(timers: loop, stopped: stoppedByPerson, host: RestartsOfDaemon(self))
  }

  /// At each of a worker's transitions.
  func supervise(_ runtime: WorkerRuntime, _ transition: Transition) {
    restarts.note(transition)
    if transition.to == .terminated, transition.from != .terminated {
      if case .requested = transition.cause { runtime.stored?.wasStopped() }
      reloadEnded(runtime, transition.cause)
    }
    senses.liveness.followLiveness(of: runtime, transition)
    dependencyStarter.advance()
  }

  func personAsks(_ verb: Request.Verb, _ id: WorkerID) {
    restarts.personAsks(verb, id)
    if verb == .stop || verb == .terminate {
      dependencyStarter.stopWaiting(id, "\(id) was stopped before it was started")
    }
  }

  /// The configuration was read again.
  func restartRulesChanged(_ runtime: WorkerRuntime) {
    restarts.termsChanged(of: runtime.id)
    senses.liveness.followLiveness(of: runtime, nil)
    // With the ports of health checks as they are now.
    runtime.traffic = nil
  }

  /// The configuration no longer declares it.
  func forgetPlans(of id: WorkerID) {
    restarts.forgetPlans(of: id)
    dependencyStarter.stopWaiting(id, "\(id) is no longer in the configuration")
  }

  /// There is no worker of that name any more.
  func removeWorker(_ id: WorkerID) {
    workers[id] = nil
    restarts.remove(id)
  }
}
