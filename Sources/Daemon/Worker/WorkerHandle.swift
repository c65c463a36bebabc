import Lifecycle

/// One worker, for the components of its run: its id, its state in the engine, and the log. It
/// doesn't keep the worker alive.
struct WorkerHandle {
  let id: WorkerID
  let driver: EngineDriver
  private let daemonLog: DaemonLog
  private(set) weak var worker: WorkerUnit?

  init(worker: WorkerUnit, driver: EngineDriver, log: DaemonLog) {
    self.worker = worker
    id = worker.id
    self.driver = driver
    daemonLog = log
  }

  /// The worker's state; nil: the engine doesn't know it.
  var state: WorkerState? { driver.state.state(of: id) }

  func send(_ event: Event) { driver.send(event) }

  func log(_ priority: DaemonLog.Priority, _ text: String) {
    daemonLog(priority, "\(id): \(text)")
  }
}
