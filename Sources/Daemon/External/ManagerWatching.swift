import Policy

// These functions wake an external worker that sleeps when its manager wants something of it; see
// `SleepWatch`.
extension WorkerSleeps {
  /// The time between two checks. A check reads two small files of /proc for each process, which
  /// takes 30 µs.
  static let managerInterval = Duration.milliseconds(100)

  /// Begins to watch the manager of a worker that has just fallen asleep. The watch ends when
  /// `managerWatch` is removed.
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
