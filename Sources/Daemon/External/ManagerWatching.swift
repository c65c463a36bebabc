import Lifecycle

/// Wakes an external worker that sleeps when its manager wants something of it; see `SleepWatch`.
/// It belongs to the event loop's thread.
struct ManagerWatching {
  /// Returns why the worker should run; nil if it can sleep on.
  typealias Check = () -> String?

  let driver: EngineDriver
  let workers: WorkerRegistry
  let timers: any Timers
  /// Makes the worker's resume precede others.
  let prioritize: (WorkerID) -> Void

  /// The time between two checks. A check reads two small files of /proc for each process, which
  /// takes 30 µs.
  static let interval = Duration.milliseconds(100)

  /// Begins to watch the manager of a worker that has just fallen asleep. The watch ends when
  /// `managerWatch` is removed.
  func watchManager(of worker: WorkerUnit, _ check: Check?) {
    let isWatching = isNeeded
    worker.managerWatch = check
    if check != nil, !isWatching { checkLater() }
  }

  private var isNeeded: Bool { workers.values.contains { $0.managerWatch != nil } }

  private func checkLater() {
    timers.after(Self.interval) {
      for worker in workers.values { check(worker) }
      if isNeeded { checkLater() }
    }
  }

  private func check(_ worker: WorkerUnit) {
    // During a hibernation the daemon itself stops, traces and continues the processes.
    guard let check = worker.managerWatch, !worker.isBusy, !worker.hasExited,
      driver.state.state(of: worker.id)?.sleeps == true, let reason = check()
    else { return }
    prioritize(worker.id)
    driver.send(.wakeNeeded(worker.id, reason))
  }
}
