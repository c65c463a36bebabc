import Lifecycle
import Policy
import Supervision

/// Probes each running worker with `liveness:` through a `LivenessMonitor` of its run. No worker
/// falls asleep while a question is under way. It belongs to the event loop's thread.
struct LivenessSupervisor {
  let timers: any Timers
  let driver: EngineDriver
  let probes: any ProbeQuestions
  let activity: ActivitySampler
  let launchedAt: (WorkerID) -> Instant

  /// Begins, pauses or ends the probes of a worker.
  ///
  /// - Parameter transition: nil if the configuration has changed.
  func followLiveness(of worker: WorkerUnit, _ transition: Transition?) {
    let state = transition?.to ?? driver.state.state(of: worker.id) ?? .terminated
    guard let probe = worker.configuration.liveness, worker.external == nil,
      let process = worker.process, state == .foreground || state == .background
    else { return pauseLiveness(of: worker, state) }
    if worker.liveness?.probe != probe {
      pauseLiveness(of: worker, .terminated)
      worker.liveness = LivenessMonitor(
        probe, timers: timers, question: QuietQuestion(to: worker, process, by: self))
    }
    let wasAsleep = transition?.from == .resuming
    worker.liveness?.runs(
      since: wasAsleep ? timers.now : max(launchedAt(worker.id), .zero))
  }

  private func pauseLiveness(of worker: WorkerUnit, _ state: WorkerState) {
    switch state {
    // The answer is awaited before the worker is frozen; see `afterQuestions`.
    case .suspending: worker.liveness?.pause()
    case .terminating, .terminated:
      worker.liveness?.end()
      worker.liveness = nil
      worker.actionAfterQuestions = nil
    default: worker.liveness?.stopAsking()
    }
  }
}

extension WorkerUnit {
  /// Performs an action now, or when the question that is under way has been answered: a connection
  /// in a frozen worker's queue would wake the worker.
  func afterQuestions(_ driver: EngineDriver, _ action: @escaping () -> Void) {
    guard isAsked else { return action() }
    run.actionAfterQuestions = { [driver, unowned self] in
      if driver.state.state(of: id) == .suspending, !hasExited { action() }
    }
  }

  /// Performs the action that waited for the end of a question, if none is under way any more.
  func performActionAfterQuestions() {
    guard !isAsked, let action = run.actionAfterQuestions else { return }
    run.actionAfterQuestions = nil
    action()
  }
}
