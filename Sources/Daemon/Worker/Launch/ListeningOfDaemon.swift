import Lifecycle
import Linux

/// The daemon's implementation for `ListeningSockets`.
final class ListeningOfDaemon: ListeningHost {
  private let phase: DaemonPhase
  private let workers: WorkerRegistry
  private let declared: DeclaredWorkers
  private let launching: (WorkerID) -> Bool
  private let daemonLog: DaemonLog

  init(
    phase: DaemonPhase, workers: WorkerRegistry, declared: DeclaredWorkers, log: DaemonLog,
    isLaunching: @escaping (WorkerID) -> Bool
  ) {
    self.phase = phase
    self.workers = workers
    self.declared = declared
    daemonLog = log
    launching = isLaunching
  }

  var isClosing: Bool { phase.isClosing }
  func hasProcess(_ id: WorkerID) -> Bool { workers[id]?.process != nil }
  func isLaunching(_ id: WorkerID) -> Bool { launching(id) }
  func processes(of id: WorkerID) -> ProcessTree? {
    // Of a worker that has ended, or can't be read, no sockets are taken back: they are opened again.
    try? workers[id]?.process?.tree()
  }
  func start(_ id: WorkerID) {
    declared.startAutomatically(id, verb: .start, occasion: .connection)
  }
  func log(_ priority: DaemonLog.Priority, _ text: String) { daemonLog(priority, text) }
}
