import Lifecycle
import Linux

/// Ends workers: passes each request, and the end of each root process, to the run's `WorkerEnding`. Belongs to
/// the loop's thread.
struct WorkerEnds {
  let services: Services
  let driver: EngineDriver
  let workers: WorkerRegistry
  let requests: WorkerRequests
  let senses: Senses
  let snapshots: SnapshotKeeper
  let launchPlanner: LaunchPlanner
  let restarts: RestartSupervisor
  let listening: ListeningSockets
  let supervision: WorkerSupervision
  let endedRuns: EndedRuns
  /// nil: the configuration declares the workers.
  let program: (any CallersProgram)?
  /// The chronicle keeps the last lines of a worker's output, if its end is a crash.
  let keepLastLines: (WorkerID, [String]?) -> Void
  /// Another process may represent an external worker from now on.
  let externalRootHasEnded: (WorkerUnit) -> Void

  /// - Parameter signal: instead of its `stop_signal`.
  func terminate(_ id: WorkerID, by signal: Int32? = nil) {
    ending(of: workers[id])?.terminate(by: signal)
  }

  func kill(_ id: WorkerID) { ending(of: workers[id])?.kill() }

  /// Its root process has ended, or an operation that its end has to wait for.
  func rootHasEnded(_ runtime: WorkerUnit) { ending(of: runtime)?.rootHasEnded() }

  /// nil: it has no process.
  private func ending(of runtime: WorkerUnit?) -> WorkerEnding? {
    guard let runtime, let process = runtime.process else { return nil }
    if let ending = runtime.ending { return ending }
    let worker = WorkerHandle(runtime: runtime, driver: driver, log: services.log)
    let adapter = EndOfWorker(worker: worker, process: process, ends: self)
    let ending = WorkerEnding(timers: services.loop, mechanics: adapter, host: adapter)
    runtime.ending = ending
    return ending
  }

  /// Nothing of a worker's run stays: sockets, watches, image, process.
  func clearAway(_ runtime: WorkerUnit) {
    let before = runtime.profile
    // Before its files are removed: it can't bring new ones.
    runtime.conversation?.end()
    snapshots.remove(runtime.id.name)
    senses.imageRemover.removeImages(of: runtime)
    runtime.endRun(services.loop)
    if runtime.profile != before { driver.send(runtime.channelsChanged) }
  }
}

/// Workers of `run` that have ended are still shown, a hundred at most: a script may `run` under new names for
/// years. Belongs to the loop's thread.
final class EndedRuns {
  static let limit = 100

  private let driver: EngineDriver
  private let workers: WorkerRegistry
  private let requests: WorkerRequests
  private let supervision: WorkerSupervision
  private let limit: Int
  /// The latest last.
  private var ids: [WorkerID] = []

  init(
    driver: EngineDriver, workers: WorkerRegistry, requests: WorkerRequests,
    supervision: WorkerSupervision, limit: Int = EndedRuns.limit
  ) {
    self.driver = driver
    self.workers = workers
    self.requests = requests
    self.supervision = supervision
    self.limit = limit
  }

  /// - Parameter latest: has just ended.
  func forgetOldRuns(after latest: WorkerID) {
    ids.removeAll { $0 == latest }
    ids.append(latest)
    guard ids.count > limit else { return }
    let oldest = ids.removeFirst()
    // It may have been run again since; then it comes back at its next end. Or the configuration has it now.
    guard workers[oldest]?.isDeclared == false, !requests.isAlive(oldest) else { return }
    supervision.removeWorker(oldest)
    driver.send(.removed(oldest))
  }
}
