import Hibernation
import Lifecycle
import Policy
import Supervision

/// What `SleepOfWorker` needs beside services and components, for one run of a worker. Tests hand in their own.
protocol SleepSurroundings: AnyObject {
  /// Calls back when nothing is asked of the worker any more and it knows that it will be suspended.
  func whenReadyToSuspend(then: @escaping () -> Void)
  /// From now on its manager is watched, where it has one.
  func watchManager(_ watch: SleepWatch?)
  /// What starts the keeper where that is missing; for another thread.
  func keeperStart() -> @Sendable () -> Void
  func resumePreference(_ rules: HibernationRules) -> ResumePreference
  func hasHibernated(_ summary: HibernationSummary, took duration: Duration)
  /// Before the engine hears of it. `why`: a clause, where it isn't the engine's cause.
  func tellAwake(why: String?)
  /// It couldn't be woken: where one of its threads is still being released, it is woken after that.
  func wakeWhenReleased()
  func kill()
  /// Its root process has ended, and no operation is under way any more.
  func rootHasEnded()
}

/// What a worker's `SleepOfWorker` gets of the daemon, for one run.
final class SurroundingsOfWorker: SleepSurroundings {
  private unowned let daemon: Daemon
  private weak var runtime: WorkerUnit?
  private let id: WorkerID

  init(_ daemon: Daemon, _ runtime: WorkerUnit) {
    self.daemon = daemon
    self.runtime = runtime
    id = runtime.id
  }

  func whenReadyToSuspend(then: @escaping () -> Void) {
    guard let runtime else { return }
    daemon.senses.liveness.whenUnasked(runtime) { [daemon] in
      daemon.conversations.whenTold(runtime, then)
    }
  }

  func watchManager(_ watch: SleepWatch?) {
    if let runtime { daemon.managers.watchManager(of: runtime, watch.map { $0.look }) }
  }

  func keeperStart() -> @Sendable () -> Void {
    let start = daemon.keeperStarter.startKeeperWhereMissing()
    return start
  }

  func resumePreference(_ rules: HibernationRules) -> ResumePreference {
    daemon.resumeChoice.preference(rules)
  }

  func hasHibernated(_ summary: HibernationSummary, took duration: Duration) {
    if let runtime { daemon.sleeps.note(summary, of: runtime, took: duration) }
  }

  func tellAwake(why: String?) {
    if let runtime { daemon.conversations.tellAwake(runtime, why: why) }
  }
  func wakeWhenReleased() { daemon.sleeps.wakeWhenReleased(id) }
  func kill() { daemon.ends.kill(id) }
  func rootHasEnded() { if let runtime { daemon.ends.rootHasEnded(runtime) } }
}
