import Lifecycle
import Linux

/// Ends workers: passes each request, and the end of each root process, to the run's `WorkerEnding`. Belongs to
/// the loop's thread.
final class WorkerEnds {
  struct Parts {
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
  }

  let parts: Parts

  init(_ parts: Parts) { self.parts = parts }

  /// - Parameter signal: instead of its `stop_signal`.
  func terminate(_ id: WorkerID, by signal: Int32? = nil) {
    ending(of: parts.workers[id])?.terminate(by: signal)
  }

  func kill(_ id: WorkerID) { ending(of: parts.workers[id])?.kill() }

  /// Its root process has ended, or an operation that its end has to wait for.
  func rootHasEnded(_ runtime: WorkerUnit) { ending(of: runtime)?.rootHasEnded() }

  /// nil: it has no process.
  private func ending(of runtime: WorkerUnit?) -> WorkerEnding? {
    guard let runtime, let process = runtime.process else { return nil }
    if let ending = runtime.ending { return ending }
    let services = parts.services
    let worker = WorkerHandle(runtime: runtime, driver: parts.driver, log: services.log)
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
    parts.snapshots.remove(runtime.id.name)
    parts.senses.imageRemover.removeImages(of: runtime)
    runtime.endRun(parts.services.loop)
    if runtime.profile != before { parts.driver.send(runtime.channelsChanged) }
  }
}
