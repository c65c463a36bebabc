import Lifecycle
import Linux

/// Ends workers: hands each request, and the end of each root process, to the run's `WorkerEnding`. Belongs to the
/// loop's thread.
final class WorkerEnds {
  private unowned let daemon: Daemon
  private lazy var closing = RunClosing(daemon.loop, RunClosingOfDaemon(daemon))

  init(_ daemon: Daemon) { self.daemon = daemon }

  /// - Parameter signal: instead of its `stop_signal`.
  func terminate(_ id: WorkerID, by signal: Int32? = nil) {
    ending(of: daemon.workers[id])?.terminate(by: signal)
  }

  func kill(_ id: WorkerID) { ending(of: daemon.workers[id])?.kill() }

  /// Its root process has ended, or something that its end has to wait for.
  func rootHasEnded(_ runtime: WorkerUnit) { ending(of: runtime)?.rootHasEnded() }

  /// nil: it has no process.
  private func ending(of runtime: WorkerUnit?) -> WorkerEnding? {
    guard let runtime, let process = runtime.process else { return nil }
    if let ending = runtime.ending { return ending }
    let adapter = EndOfWorker(daemon, runtime, process)
    let ending = WorkerEnding(daemon.loop, adapter, adapter)
    runtime.ending = ending
    return ending
  }

  /// Nothing of a worker's run stays: sockets, watches, image, process.
  func clearAway(_ runtime: WorkerUnit) {
    let before = runtime.profile
    closing.close(runtime)
    if runtime.profile != before { daemon.driver.send(runtime.channelsChanged) }
  }
}

/// What `RunClosing` gets of the daemon.
private final class RunClosingOfDaemon: RunClosingHost {
  private unowned let daemon: Daemon

  init(_ daemon: Daemon) { self.daemon = daemon }

  func removeFiles(of runtime: WorkerUnit) {
    daemon.snapshots.remove(runtime.id.name)
    daemon.senses.imageRemover.removeImages(of: runtime)
  }
}
