import Glibc
import Hibernation
import Lifecycle
import Linux
import Policy

// The directives that put a worker to sleep and wake it go to its run's `WorkerSleep`.

extension Daemon {
  /// For a new run, or an adopted one.
  func makeSleep(for runtime: WorkerRuntime) {
    let adaptor = SleepOfWorker(self, runtime)
    runtime.sleep = WorkerSleep(
      runtime.id, driver: driver, clock: loop, mechanics: adaptor, host: adaptor)
  }

  func inspect(_ id: WorkerID) {
    guard let runtime = workers[id], runtime.process != nil, let sleep = runtime.sleep else {
      return driver.send(.exited(id, .unknown))
    }
    sleep.inspect()
  }

  /// A hibernation has succeeded.
  func note(_ summary: HibernationSummary, of runtime: WorkerRuntime, took duration: Duration) {
    senses.hibernationCosts.note(summary, of: runtime, took: duration)
    if summary.image.restore.isLazy { standbyStarter.startStandbyPager() }
  }

  /// After a wake that failed. Where a thread stood in a trace stop of ours, it is released as soon as
  /// it can be; then the worker has to be woken again.
  func wakeWhenReleased(_ id: WorkerID) {
    guard Stragglers.shared.hasAny else { return }
    loop.after(.seconds(1)) { [unowned self] in
      guard engine.state(of: id)?.sleeps == true else { return }
      driver.send(.wakeNeeded(id, "a thread that an earlier hibernation held is being released"))
    }
  }

  static func failure(_ body: () throws -> Void) -> String? {
    do {
      try body()
      return nil
    } catch { return "\(error)" }
  }
}
