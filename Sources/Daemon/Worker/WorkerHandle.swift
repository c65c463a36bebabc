import Lifecycle

/// One worker, for the adapters of its run: its id, what the engine knows of it, and the log. It doesn't keep the
/// worker alive.
struct WorkerHandle {
  let id: WorkerID
  let driver: EngineDriver
  private let daemonLog: DaemonLog
  private(set) weak var runtime: WorkerUnit?

  init(runtime: WorkerUnit, driver: EngineDriver, log: DaemonLog) {
    self.runtime = runtime
    id = runtime.id
    self.driver = driver
    daemonLog = log
  }

  /// nil: the engine doesn't know it.
  var state: WorkerState? { driver.state.state(of: id) }

  func send(_ event: Event) { driver.send(event) }

  func log(_ priority: DaemonLog.Priority, _ text: String) {
    daemonLog(priority, "\(id): \(text)")
  }
}
