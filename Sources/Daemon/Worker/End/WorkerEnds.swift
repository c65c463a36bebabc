import Lifecycle
import Linux
import Supervision

/// Ends workers: passes each request, and the end of each root process, to the run's `WorkerEnding`. Belongs to
/// the loop's thread.
struct WorkerEnds {
  let loop: any Timers & DescriptorWatches
  let processes: any WorkerProcesses
  let memory: any WorkerMemory
  let records: any WorkerRecords
  let log: DaemonLog
  let driver: EngineDriver
  let workers: WorkerRegistry
  let requests: WorkerRequests
  let kernelKills: KernelKillWatch
  let imageDisk: ImageDiskMonitor
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
  func rootHasEnded(_ worker: WorkerUnit) { ending(of: worker)?.rootHasEnded() }

  /// nil: it has no process.
  private func ending(of worker: WorkerUnit?) -> WorkerEnding? {
    guard let worker, let process = worker.process else { return nil }
    if let ending = worker.ending { return ending }
    let ending = WorkerEnding(of: worker, process: process, ends: self)
    worker.ending = ending
    return ending
  }

  /// Nothing of it is left: the engine gets the end, and the next run may begin.
  func concludeRun(_ worker: WorkerUnit, _ status: ExitStatus, lastLines: [String]?) {
    let id = worker.id
    guard workers[id] === worker else { return }
    restarts.record(
      footprint: driver.state.footprint(of: id), lastWords: lastLines?.last, of: id)
    keepLastLines(id, lastLines)
    clearAway(worker)
    records.remove(id.name)
    program?.hasEnded(status)
    driver.send(.exited(id, status))
    listening.offer(worker)
    // It isn't declared any more, and only its end was waited for.
    if driver.state.state(of: id) == nil { supervision.removeWorker(id) }
    if !worker.isDeclared { endedRuns.forgetOldRuns(after: id) }
  }

  /// Nothing of a worker's run stays: sockets, watches, image, process.
  func clearAway(_ worker: WorkerUnit) {
    let before = worker.profile
    // Before its files are removed: it can't bring new ones.
    worker.conversation?.end()
    snapshots.remove(worker.id.name)
    removeImage(of: worker)
    worker.endRun(loop)
    if worker.profile != before { driver.send(worker.channelsChanged) }
  }

  private func removeImage(of worker: WorkerUnit) {
    let name = worker.id.name
    imageDisk.imageGone(of: name, keepsBase: false)
    // Only a worker's own image has made the disk fuller.
    let then = worker.image == nil ? nil : { [imageDisk] in imageDisk.sendReading() }
    // What is there may be another process's of that name, of which no record is left.
    worker.imageRemoval = memory.removeImage(
      of: name, isUnreadableNeeded: worker.process == nil, then: then)
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

extension ExitStatus {
  init(_ exit: WorkerExit) {
    self =
      switch exit {
      case .exited(let code): .exited(code)
      case .signaled(let signal): .signaled(signal)
      case .unknown: .unknown
      }
  }
}
