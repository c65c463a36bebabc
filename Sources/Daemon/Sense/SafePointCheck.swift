import Lifecycle
import Linux
import Supervision

/// Finds a reason against freezing a worker that the engine doesn't know: locks on files. Between
/// this check and the freeze a worker could take a lock. A worker that has been idle for the whole
/// grace seldom does. It belongs to the event loop's thread.
struct SafePointCheck {
  /// Counts the file locks of a worker's processes, and calls back once on the event loop, later.
  typealias Count = (
    _ process: WorkerProcess, _ id: WorkerID, _ then: @escaping (Int) -> Void
  ) -> Void

  let driver: EngineDriver
  let workers: WorkerRegistry
  let countLocks: Count
}

extension SafePointCheck {
  init(services: Services, driver: EngineDriver, workers: WorkerRegistry) {
    let (mechanics, loop) = (services.mechanics, services.loopReturn)
    self.init(driver: driver, workers: workers) { process, id, then in
      let (root, session, cgroup) = (process.identity, process.session, process.cgroup)
      let done: @Sendable (Int) -> Void = loop.callback(then)
      mechanics.submit(about: id.name) {
        // A process that has ended has no locks.
        let tree = try? ProcessTree.discover(root: root, session: session, cgroup: cgroup)
        done(FileLocks.held(by: tree?.pids ?? []))
      }
    }
  }

  /// Answers the engine's request with the event `fileLocks`.
  func checkSafePoint(_ id: WorkerID) {
    guard let process = workers[id]?.process else { return driver.send(.fileLocks(id, held: 0)) }
    countLocks(process, id) { [driver, workers] held in
      // If the run has ended, the engine gets its end, and the next run has other locks.
      guard workers[id]?.process === process else { return }
      driver.send(.fileLocks(id, held: held))
    }
  }
}
