import Lifecycle
import Linux

extension Daemon {
  /// What speaks against freezing it now, beside what the engine knows. Between this look and the
  /// freeze a worker could take a lock; what has been idle for the whole grace seldom does.
  func checkSafePoint(_ id: WorkerID) {
    let pids = (try? workers[id]?.process?.tree().pids) ?? []
    feed(.fileLocks(id, held: FileLocks.held(by: pids)))
  }
}
