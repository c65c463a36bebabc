import Hibernation
import Lifecycle
import Linux
import Policy

/// What belongs to the sleep of workers and to no single run. The directives that put a worker to sleep and wake it
/// go to its run's `WorkerSleep`. Belongs to the loop's thread.
final class WorkerSleeps {
  private unowned let daemon: Daemon

  init(_ daemon: Daemon) { self.daemon = daemon }

  /// For a new run, or an adopted one.
  func makeSleep(for runtime: WorkerUnit) {
    let watch = WakeWatch(of: runtime, daemon.services, daemon.driver)
    runtime.wakeWatch = watch
    let adaptor = SleepOfWorker(
      runtime, daemon.services, daemon.driver, daemon.senses.imageDisk,
      image: daemon.state.image(of: runtime.id.name), watch, SurroundingsOfWorker(daemon, runtime))
    runtime.sleep = WorkerSleep(
      runtime.id, driver: daemon.driver, clock: daemon.loop, mechanics: adaptor, host: adaptor)
  }

  func inspect(_ id: WorkerID) {
    guard let runtime = daemon.workers[id], runtime.process != nil, let sleep = runtime.sleep else {
      return daemon.driver.send(.exited(id, .unknown))
    }
    sleep.inspect()
  }

  /// A hibernation has succeeded.
  func note(_ summary: HibernationSummary, of runtime: WorkerUnit, took duration: Duration) {
    daemon.senses.hibernationCosts.note(summary, of: runtime, took: duration)
    if summary.image.restore.isLazy { daemon.standbyStarter.startStandbyPager() }
  }

  /// After a wake that failed. Where a thread stood in a trace stop of ours, it is released as soon as
  /// it can be; then the worker has to be woken again.
  func wakeWhenReleased(_ id: WorkerID) {
    guard Stragglers.shared.hasAny else { return }
    daemon.loop.after(.seconds(1)) { [unowned daemon] in
      guard daemon.engine.state(of: id)?.sleeps == true else { return }
      daemon.driver.send(
        .wakeNeeded(id, "the release of a thread from an earlier hibernation"))
    }
  }
}
