import Lifecycle
import Supervision

// An external worker that sleeps is woken as soon as its manager wants anything of it; see `SleepWatch`.

extension Daemon {
  /// How soon. A look reads two small files of /proc for each process: 30 µs.
  private static let managerInterval = Duration.milliseconds(100)

  /// It has just fallen asleep.
  func watchManager(of runtime: WorkerRuntime, _ watch: SleepWatch?) {
    let isWatching = workers.values.contains { $0.managerWatch != nil }
    runtime.managerWatch = watch
    if watch != nil, !isWatching { lookForManagersLater() }
  }

  private func lookForManagersLater() {
    loop.after(Self.managerInterval) { [unowned self] in
      for runtime in workers.values { lookForManager(of: runtime) }
      if workers.values.contains(where: { $0.managerWatch != nil }) { lookForManagersLater() }
    }
  }

  private func lookForManager(of runtime: WorkerRuntime) {
    // During a hibernation its processes are stopped, traced and continued by us.
    guard let watch = runtime.managerWatch, !runtime.isBusy, !runtime.hasExited,
      engine.state(of: runtime.id)?.sleeps == true, let why = watch.look()
    else { return }
    hibernation.prioritize(runtime.id.name)
    driver.send(.wakeNeeded(runtime.id, why))
  }
}
