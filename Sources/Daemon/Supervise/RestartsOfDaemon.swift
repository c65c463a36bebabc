import Lifecycle
import Policy

/// The daemon's implementation for `RestartSupervisor`.
final class RestartsOfDaemon: RestartHost {
  /// Starts a worker after those that it depends on.
  typealias Start = (WorkerID, _ answer: @escaping (Answer) -> Void) -> Void

  private let phase: DaemonPhase
  private let driver: EngineDriver
  private let workers: WorkerRegistry
  private let daemonLog: DaemonLog
  private let start: Start

  init(
    phase: DaemonPhase, driver: EngineDriver, workers: WorkerRegistry, log: DaemonLog,
    start: @escaping Start
  ) {
    self.phase = phase
    self.driver = driver
    self.workers = workers
    daemonLog = log
    self.start = start
  }

  var isClosing: Bool { phase.isClosing }
  func room(for footprint: ByteCount) -> MemoryRoom { driver.state.room(for: footprint) }

  func state(of id: WorkerID) -> WorkerState? { driver.state.state(of: id) }

  func lastExit(of id: WorkerID) -> ExitStatus? { driver.state.snapshot(of: id)?.lastExit }

  func terms(of id: WorkerID) -> RestartTerms? {
    workers[id].map {
      RestartTerms(
        rules: $0.configuration.restart, importance: $0.configuration.importance,
        isExternal: $0.external != nil)
    }
  }

  func start(_ id: WorkerID, then answer: @escaping (Answer) -> Void) {
    start(id, answer)
  }

  func log(_ priority: DaemonLog.Priority, _ text: String) { daemonLog(priority, text) }
}

/// The daemon's implementation for `WorkerSupervision`.
final class SupervisionOfDaemon: SupervisionHost {
  private let workers: WorkerRegistry
  private let reloads: WorkerReloads
  private let liveness: LivenessSupervisor
  private let listening: ListeningSockets

  init(
    workers: WorkerRegistry, reloads: WorkerReloads, liveness: LivenessSupervisor,
    listening: ListeningSockets
  ) {
    self.workers = workers
    self.reloads = reloads
    self.liveness = liveness
    self.listening = listening
  }

  func dropStore(of id: WorkerID) {
    workers[id]?.stored?.wasStopped()
  }

  func hasEnded(_ id: WorkerID, _ cause: Cause) { reloads.workerHasEnded(id, cause) }

  func followLiveness(of id: WorkerID, _ transition: Transition?) {
    if let runtime = workers[id] { liveness.followLiveness(of: runtime, transition) }
  }

  func forgetTraffic(of id: WorkerID) { workers[id]?.traffic = nil }

  func remove(_ id: WorkerID) {
    // Sockets that were still being opened when it was no longer declared.
    if let runtime = workers[id] { listening.closeListeners(of: runtime) }
    workers[id] = nil
  }
}
