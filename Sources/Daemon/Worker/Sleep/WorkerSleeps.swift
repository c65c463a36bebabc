import Lifecycle
import Policy

/// Makes the `WorkerSleep` of each run, and has what all of them use. Belongs to the loop's thread.
final class WorkerSleeps {
  let driver: EngineDriver
  let timers: any Timers
  let memory: any WorkerMemory
  let imageDisk: ImageDiskMonitor
  let log: DaemonLog
  /// Ends a worker by SIGKILL, soon after the call.
  let kill: (WorkerID) -> Void
  let workers: WorkerRegistry
  let watches: any DescriptorWatches

  init(
    driver: EngineDriver, workers: WorkerRegistry, timers: any Timers,
    watches: any DescriptorWatches, memory: any WorkerMemory, imageDisk: ImageDiskMonitor,
    log: DaemonLog, kill: @escaping (WorkerID) -> Void
  ) {
    self.driver = driver
    self.workers = workers
    self.timers = timers
    self.watches = watches
    self.memory = memory
    self.imageDisk = imageDisk
    self.log = log
    self.kill = kill
  }

  /// Called for a new run, and for an adopted one.
  func makeSleep(for worker: WorkerUnit) {
    let sleep = WorkerSleep(worker, self)
    (worker.sleep, worker.wakeWatch) = (sleep, sleep.watch)
  }

  func inspect(_ id: WorkerID) {
    guard let worker = workers[id], worker.process != nil, let sleep = worker.sleep else {
      return driver.send(.exited(id, .unknown))
    }
    sleep.inspect()
  }

  // MARK: managers of external workers

  /// The time between two checks. A check reads two small files of /proc for each process, which
  /// takes 30 µs.
  static let managerInterval = Duration.milliseconds(100)

  /// Begins to watch the manager of a worker that has just fallen asleep. The worker wakes if its
  /// manager wants something of it; see `SleepWatch`. It ends when `managerWatch` is removed.
  ///
  /// - Parameter check: returns why the worker should run; nil if it can sleep on.
  func watchManager(of worker: WorkerUnit, _ check: (() -> String?)?) {
    let isWatching = watchesManagers
    worker.managerWatch = check
    if check != nil, !isWatching { checkManagersLater() }
  }

  private var watchesManagers: Bool { workers.values.contains { $0.managerWatch != nil } }

  private func checkManagersLater() {
    timers.after(Self.managerInterval) { [self] in
      for worker in workers.values {
        // During a hibernation the daemon itself stops, traces and continues the processes.
        guard let check = worker.managerWatch, !worker.isBusy, !worker.hasExited,
          driver.state.state(of: worker.id)?.sleeps == true, let reason = check()
        else { continue }
        memory.prioritize(worker.id.name)
        driver.send(.wakeNeeded(worker.id, reason))
      }
      if watchesManagers { checkManagersLater() }
    }
  }
}
