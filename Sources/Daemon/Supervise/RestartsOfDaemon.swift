import Lifecycle
import Policy

/// What `RestartSupervisor` gets of the daemon.
final class RestartsOfDaemon: RestartHost {
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
    daemon.dependencyStarter.start(id, .restart, occasion: .restart, then: answer)
  }

  func log(_ priority: DaemonLog.Priority, _ text: String) { daemon.log(priority, text) }
}

/// What `WorkerSupervision` gets of the daemon.
final class SupervisionOfDaemon: SupervisionHost {
  private unowned let daemon: Daemon

  init(_ daemon: Daemon) { self.daemon = daemon }

  func dropStore(of id: WorkerID) {
    daemon.workers[id]?.stored?.wasStopped()
  }

  func hasEnded(_ id: WorkerID, _ cause: Cause) { daemon.reloads.workerHasEnded(id, cause) }

  func followLiveness(of id: WorkerID, _ transition: Transition?) {
    if let runtime = daemon.workers[id] {
      daemon.senses.liveness.followLiveness(of: runtime, transition)
    }
  }

  func forgetTraffic(of id: WorkerID) { daemon.workers[id]?.traffic = nil }

  func remove(_ id: WorkerID) {
    // Sockets that were still being opened when it was no longer declared.
    if let runtime = daemon.workers[id] { daemon.listening.closeListeners(of: runtime) }
    daemon.workers[id] = nil
  }
}
