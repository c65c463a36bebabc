import Lifecycle

/// What `RunClosing` needs of the components that hold watches and timers for a run.
protocol RunClosingHost: AnyObject {
  /// Its image and its snapshot.
  func removeFiles(of runtime: WorkerUnit)
}

/// The one place where a worker's run ends: its watches and timers on the loop are removed, open requests are
/// answered, and then the run is replaced by a new one, so that nothing of it reaches the next.
final class RunClosing {
  private let watches: any DescriptorWatches
  private let host: any RunClosingHost

  init(_ watches: any DescriptorWatches, _ host: any RunClosingHost) {
    self.watches = watches
    self.host = host
  }

  func close(_ runtime: WorkerUnit) {
    let run = runtime.run
    if let process = run.process, let token = run.exitWatch {
      watches.unwatch(process.pidfd, token)
      run.exitWatch = nil
    }
    run.conversation?.end()
    host.removeFiles(of: runtime)
    run.wakeWatch?.end()
    run.shed?.end()
    run.sleep?.end()
    run.stopCommand?.cancel()
    run.ending?.end()
    run.liveness?.end()
    run.readiness?.end()
    let held = run.heldOfLoop
    assert(held.isEmpty, "\(runtime.id): not given back at the end of its run: \(held)")
    runtime.endRun()
  }
}
