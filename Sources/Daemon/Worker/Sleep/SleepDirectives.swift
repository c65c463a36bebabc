import Hibernation
import Lifecycle
import Linux
import Policy

/// The parts of workers' sleep that don't belong to one run. The directives that put a worker to sleep and wake
/// it are passed to its run's `WorkerSleep`. Belongs to the loop's thread.
final class WorkerSleeps {
  struct Parts {
    let services: Services
    let driver: EngineDriver
    let workers: WorkerRegistry
    let state: StateDirectory
    let senses: Senses
    let conversations: WorkerConversations
    let managers: ManagerWatching
    let keeperStarter: KeeperStarter<DescriptorKeeperMeans>
    let standbyStarter: StandbyStarter<Standby>
    let resumeChoice: ResumeChoice
    let ends: WorkerEnds
  }

  let parts: Parts

  init(_ parts: Parts) { self.parts = parts }

  private var services: Services { parts.services }
  private var driver: EngineDriver { parts.driver }

  /// For a new run, or an adopted one.
  func makeSleep(for runtime: WorkerUnit) {
    let watch = WakeWatch(of: runtime, services, driver)
    runtime.wakeWatch = watch
    let adaptor = SleepOfWorker(
      runtime: runtime, services: services, driver: driver, imageDisk: parts.senses.imageDisk,
      image: parts.state.image(of: runtime.id.name), wakeWatch: watch,
      surroundings: SurroundingsOfWorker(
        WorkerHandle(runtime: runtime, driver: driver, log: services.log), self))
    runtime.sleep = WorkerSleep(
      runtime.id, driver: driver, clock: services.loop, mechanics: adaptor, host: adaptor)
  }

  func inspect(_ id: WorkerID) {
    guard let runtime = parts.workers[id], runtime.process != nil, let sleep = runtime.sleep else {
      return driver.send(.exited(id, .unknown))
    }
    sleep.inspect()
  }

  /// A hibernation has succeeded.
  func record(
    _ summary: HibernationSummary, of runtime: WorkerUnit, from before: ByteCount,
    took duration: Duration
  ) {
    parts.senses.hibernationCosts.record(summary, of: runtime, from: before, took: duration)
    if summary.image.restore.isLazy { parts.standbyStarter.startStandbyPager() }
  }

  /// After a failed wake. If a thread was in a trace stop of the daemon, it is released as soon as possible;
  /// then the worker has to be woken again.
  func wakeWhenReleased(_ id: WorkerID) {
    guard Stragglers.shared.hasAny else { return }
    services.loop.after(.seconds(1)) { [driver] in
      guard driver.state.state(of: id)?.sleeps == true else { return }
      driver.send(
        .wakeNeeded(id, "the release of a thread from an earlier hibernation"))
    }
  }
}
