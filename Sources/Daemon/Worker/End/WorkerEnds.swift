import Lifecycle
import Supervision

/// Ends workers. It passes each request, and the end of each root process, to the `WorkerEnding` of
/// the run. Belongs to the loop's thread.
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
  /// The program of the daemon's caller; nil: the configuration declares the workers.
  let program: (any CallersProgram)?
  /// Passes the last lines of a worker's output to the chronicle, which keeps them if the end is a
  /// crash.
  let keepLastLines: (WorkerID, [String]?) -> Void
  /// Called when the root process of an external worker has ended. Another process may represent
  /// the worker from now on.
  let externalRootDidEnd: (WorkerUnit) -> Void

  /// - Parameter signal: sent instead of the worker's `stop_signal`.
  func terminate(_ id: WorkerID, by signal: Int32? = nil) {
    ending(of: workers[id])?.terminate(by: signal)
  }

  func kill(_ id: WorkerID) { ending(of: workers[id])?.kill() }

  /// Handles the end of the worker's root process, or of an operation that its end waits for.
  func rootDidEnd(_ worker: WorkerUnit) { ending(of: worker)?.rootDidEnd() }

  /// The `WorkerEnding` of the worker's current run; nil: it has no process.
  private func ending(of worker: WorkerUnit?) -> WorkerEnding? {
    guard let worker, let process = worker.process else { return nil }
    if let ending = worker.ending { return ending }
    let ending = WorkerEnding(of: worker, process: process, ends: self)
    worker.ending = ending
    return ending
  }

  /// Completes the end of a run of which no process is left: the engine gets the end, and the next
  /// run may begin.
  func concludeRun(_ worker: WorkerUnit, _ status: ExitStatus, lastLines: [String]?) {
    let id = worker.id
    guard workers[id] === worker else { return }
    restarts.record(
      footprint: driver.state.footprint(of: id), lastLine: lastLines?.last, of: id)
    keepLastLines(id, lastLines)
    cleanUp(worker)
    records.remove(id.name)
    program?.didEnd(status)
    driver.send(.exited(id, status))
    didEnd(worker)
  }

  /// The engine knows that the run has ended, or that the launch has failed.
  func didEnd(_ worker: WorkerUnit) {
    listening.offer(worker)
    // The worker isn't declared any more, and its removal only waited for its end or its launch.
    if driver.state.state(of: worker.id) == nil { supervision.removeWorker(worker.id) }
    if !worker.isDeclared { forgetOldRuns(after: worker.id) }
  }

  /// Removes the worker of `run` that ended first, if too many of them are still shown.
  ///
  /// - Parameter latest: the worker that has just ended.
  func forgetOldRuns(after latest: WorkerID) {
    // The worker may have been run again since. Then it is added again at its next end. Or the
    // configuration may have declared it since.
    guard let oldest = workers.recordEndedRun(latest), workers[oldest]?.isDeclared == false,
      !requests.isAlive(oldest)
    else { return }
    supervision.removeWorker(oldest)
    driver.send(.removed(oldest))
  }

  /// Removes what belongs to a worker's run: sockets, watches, image and process.
  func cleanUp(_ worker: WorkerUnit) {
    let before = worker.profile
    // The conversation ends before the files of its sockets are removed, so that it can't create
    // new ones.
    worker.conversation?.end()
    snapshots.remove(worker.id.name)
    removeImage(of: worker)
    worker.endRun(loop)
    if worker.profile != before { driver.send(worker.channelsChanged) }
  }

  private func removeImage(of worker: WorkerUnit) {
    let name = worker.id.name
    imageDisk.didRemoveImage(of: name, keepsBase: false)
    // Only an image of this worker has made the disk fuller.
    let hasImage = worker.image != nil || worker.mayHaveTrimImage
    let then = !hasImage ? nil : { [imageDisk] in imageDisk.sendReading() }
    // The image may belong to another process of that name whose record is lost.
    worker.imageRemoval = memory.removeImage(
      of: name, isUnreadableNeeded: worker.process == nil, then: then)
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
