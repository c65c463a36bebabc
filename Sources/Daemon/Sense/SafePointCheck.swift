import Lifecycle
import Linux
import Supervision

/// Finds reasons against freezing a worker now that the engine doesn't know: locks on files. Between this look
/// and the freeze a worker could take a lock; a worker that has been idle for the whole grace seldom does.
/// Belongs to the loop's thread.
final class SafePointCheck {
  /// Counts the locks that a worker's processes hold, and calls back once on the loop, later.
  typealias Count = (
    _ process: WorkerProcess, _ id: WorkerID, _ then: @escaping (Int) -> Void
  ) -> Void

  private let driver: EngineDriver
  private let workers: WorkerRegistry
  private let countLocks: Count

  init(driver: EngineDriver, workers: WorkerRegistry, countLocks: @escaping Count) {
    self.driver = driver
    self.workers = workers
    self.countLocks = countLocks
  }

  convenience init(services: Services, driver: EngineDriver, workers: WorkerRegistry) {
    let (mechanics, loop) = (services.mechanics, services.loopReturn)
    self.init(driver: driver, workers: workers) { process, id, then in
      let (root, session, cgroup) = (process.identity, process.session, process.cgroup)
      let done: @Sendable (Int) -> Void = loop.callback(then)
      mechanics.submit(about: id.name) {
        // A process that has ended holds none.
        let tree = try? ProcessTree.discover(root: root, session: session, cgroup: cgroup)
        done(FileLocks.held(by: tree?.pids ?? []))
      }
    }
  }

  /// Answers the engine with `fileLocks`.
  func checkSafePoint(_ id: WorkerID) {
    guard let process = workers[id]?.process else { return driver.send(.fileLocks(id, held: 0)) }
    countLocks(process, id) { [driver, workers] held in
      // The run has ended: the engine gets its end, and the next run's locks are others.
      guard workers[id]?.process === process else { return }
      driver.send(.fileLocks(id, held: held))
    }
  }
}
