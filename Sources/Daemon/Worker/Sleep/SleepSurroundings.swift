import Hibernation
import Lifecycle
import Policy
import Supervision

/// The functions that `SleepOfWorker` uses beside services and components, for one run of a worker. Tests
/// provide their own.
protocol SleepSurroundings: AnyObject {
  /// Calls back when no answer of the worker is open any more and it knows that it will be suspended.
  func whenReadyToSuspend(then: @escaping () -> Void)
  /// From now on its manager is watched, where it has one.
  func watchManager(_ watch: SleepWatch?)
  /// Starts the keeper if there is none; for another thread.
  func keeperStart() -> @Sendable () -> Void
  func resumePreference(_ rules: HibernationRules) -> ResumePreference
  func hasHibernated(
    _ summary: HibernationSummary, from before: ByteCount, took duration: Duration)
  /// Called before the engine gets that. `why`: a clause, if it isn't the engine's cause.
  func sendAwake(why: String?)
  /// It couldn't be woken: where one of its threads is still being released, it is woken after that.
  func wakeWhenReleased()
  func kill()
  /// Its root process has ended, and no operation is under way any more.
  func rootHasEnded()
}

/// What a worker's `SleepOfWorker` gets of the daemon, for one run.
final class SurroundingsOfWorker: SleepSurroundings {
  private let worker: WorkerHandle
  private unowned let sleeps: WorkerSleeps

  init(_ worker: WorkerHandle, _ sleeps: WorkerSleeps) {
    self.worker = worker
    self.sleeps = sleeps
  }

  private var runtime: WorkerUnit? { worker.runtime }
  private var parts: WorkerSleeps.Parts { sleeps.parts }

  func whenReadyToSuspend(then: @escaping () -> Void) {
    guard let runtime else { return }
    parts.senses.liveness.whenUnasked(runtime) { [conversations = parts.conversations] in
      conversations.whenTold(runtime, then)
    }
  }

  func watchManager(_ watch: SleepWatch?) {
    if let runtime { parts.managers.watchManager(of: runtime, watch.map { $0.look }) }
  }

  func keeperStart() -> @Sendable () -> Void {
    let start = parts.keeperStarter.startKeeperWhereMissing()
    return start
  }

  func resumePreference(_ rules: HibernationRules) -> ResumePreference {
    parts.resumeChoice.preference(rules)
  }

  func hasHibernated(
    _ summary: HibernationSummary, from before: ByteCount, took duration: Duration
  ) {
    if let runtime { sleeps.record(summary, of: runtime, from: before, took: duration) }
  }

  func sendAwake(why: String?) {
    if let runtime { parts.conversations.sendAwake(runtime, why: why) }
  }
  func wakeWhenReleased() { sleeps.wakeWhenReleased(worker.id) }
  func kill() { parts.ends.kill(worker.id) }
  func rootHasEnded() { if let runtime { parts.ends.rootHasEnded(runtime) } }
}
