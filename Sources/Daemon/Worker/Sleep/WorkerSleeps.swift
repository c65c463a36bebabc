import Lifecycle

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
}
