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

  func questions(to worker: WorkerUnit, _ process: WorkerProcess) -> RunQuestions {
    RunQuestions(supervisor: self, worker: worker, process: process)
  }

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
        probe, timers: timers, questions: questions(to: worker, process))
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

  /// Performs the action that waited for the end of a probe, if no probe is under way any more.
  func performActionAfterQuestions(_ worker: WorkerUnit) {
    guard !worker.isAsked, let action = worker.actionAfterQuestions else { return }
    worker.actionAfterQuestions = nil
    action()
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
}

/// Asks one run of a worker questions that don't count as activity: those of its `LivenessMonitor`
/// and its `ShedOverHTTP`.
struct RunQuestions {
  fileprivate let supervisor: LivenessSupervisor
  fileprivate weak var worker: WorkerUnit?
  fileprivate let process: WorkerProcess

  /// Whether the worker runs and no operation on it is under way.
  var mayBeAsked: Bool {
    guard let worker, worker.process === process, !worker.hasExited, !worker.isBusy else {
      return false
    }
    return supervisor.driver.state.state(of: worker.id)?.runs == true
  }

  /// Whether traffic on the worker's connections counts as activity.
  var watchesTraffic: Bool { worker?.traffic != nil }

  /// Asks once. `answer` is called with the answer or the lack of one, and never before this
  /// function returns.
  ///
  /// - Returns: a function that drops the question; then no answer comes.
  func ask(
    _ probe: Policy.Probe, then answer: @escaping (ProbeRunner.Outcome) -> Void
  ) -> () -> Void {
    supervisor.probes.put(probe, to: process, then: answer)
  }

  /// Reads whether traffic has come since the last reading. While a question is under way, the only
  /// reading is the one that consumes the question's own traffic.
  func readTraffic(then: @escaping (_ hasTraffic: Bool) -> Void) {
    guard let worker else { return then(false) }
    supervisor.activity.readActivity(of: worker) { then($0?.hasTraffic == true) }
  }

  func recordActivity() {
    guard let worker else { return }
    worker.sample.sign = .traffic
    supervisor.driver.send(.activity(worker.id))
  }

  /// - Parameter reason: the beginning of a sentence that says what fails.
  func reportUnhealthy(_ reason: String) {
    if let worker { supervisor.driver.send(.unhealthy(worker.id, reason)) }
  }

  /// A question's answer has come, and its connection is closed.
  func didEndQuestion() {
    if let worker { supervisor.performActionAfterQuestions(worker) }
  }
}
