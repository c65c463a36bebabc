import Lifecycle
import Policy
import Supervision

/// Has each running worker with `liveness:` asked by a `LivenessMonitor` of its run, and lets no worker fall asleep
/// while a question is out. Belongs to the loop's thread.
final class LivenessSupervisor {
  private let timers: any Timers
  private let driver: EngineDriver
  private let probes: any ProbeQuestions
  private let activity: ActivitySampler
  private let launchedAt: (WorkerID) -> Instant

  init(
    timers: any Timers, driver: EngineDriver, probes: any ProbeQuestions,
    activity: ActivitySampler, launchedAt: @escaping (WorkerID) -> Instant
  ) {
    self.timers = timers
    self.driver = driver
    self.probes = probes
    self.activity = activity
    self.launchedAt = launchedAt
  }

  func questions(to worker: WorkerUnit, _ process: WorkerProcess) -> RunQuestions {
    RunQuestions(
      supervisor: self, driver: driver, probes: probes, activity: activity, worker: worker,
      process: process)
  }

  /// `transition`: nil: the configuration has changed.
  func followLiveness(of worker: WorkerUnit, _ transition: Transition?) {
    let state = transition?.to ?? driver.state.state(of: worker.id) ?? .terminated
    guard let probe = worker.configuration.liveness, worker.external == nil,
      let process = worker.process, state == .foreground || state == .background
    else { return restLiveness(of: worker, state) }
    if worker.liveness?.probe != probe {
      restLiveness(of: worker, .terminated)
      worker.liveness = LivenessMonitor(
        probe, timers: timers, questions: questions(to: worker, process))
    }
    let wasAsleep = transition?.from == .resuming
    worker.liveness?.runs(
      since: wasAsleep ? timers.now : max(launchedAt(worker.id), .zero))
  }

  private func restLiveness(of worker: WorkerUnit, _ state: WorkerState) {
    switch state {
    // Its answer is waited for before the worker is frozen; see `onceUnasked`.
    case .suspending: worker.liveness?.pause()
    case .terminating, .terminated:
      worker.liveness?.end()
      worker.liveness = nil
      worker.whenUnasked = nil
    default: worker.liveness?.rest()
    }
  }

  /// A probe has ended, and its connection is closed: performs what waits for that.
  func resumeUnasked(_ worker: WorkerUnit) {
    guard !worker.isAsked, let action = worker.whenUnasked else { return }
    worker.whenUnasked = nil
    action()
  }
}

extension WorkerUnit {
  /// Does it now, or when the question that is out has been answered: a connection that waits in a
  /// frozen worker's queue would wake it.
  func onceUnasked(_ driver: EngineDriver, _ action: @escaping () -> Void) {
    guard isAsked else { return action() }
    run.whenUnasked = { [driver, unowned self] in
      if driver.state.state(of: id) == .suspending, !hasExited { action() }
    }
  }
}

/// Questions to one run of a worker, which don't count as activity: those of its `LivenessMonitor`, and its
/// `ShedOverHTTP`.
final class RunQuestions {
  private unowned let supervisor: LivenessSupervisor
  private let driver: EngineDriver
  private let probes: any ProbeQuestions
  private let activity: ActivitySampler
  private weak var worker: WorkerUnit?
  private let process: WorkerProcess

  fileprivate init(
    supervisor: LivenessSupervisor, driver: EngineDriver, probes: any ProbeQuestions,
    activity: ActivitySampler, worker: WorkerUnit, process: WorkerProcess
  ) {
    self.supervisor = supervisor
    self.driver = driver
    self.probes = probes
    self.activity = activity
    self.worker = worker
    self.process = process
  }

  /// It runs, and nothing is being done to it.
  var mayBeAsked: Bool {
    guard let worker, worker.process === process, !worker.hasExited, !worker.isBusy else {
      return false
    }
    return driver.state.state(of: worker.id)?.runs == true
  }

  /// Whether what comes in on its connections counts as activity.
  var watchesTraffic: Bool { worker?.traffic != nil }

  /// Asks once, and calls back with the answer, or the lack of one; never before this returns.
  ///
  /// - Returns: what drops the question: no answer comes then.
  func ask(
    _ probe: Policy.Probe, then answer: @escaping (ProbeRunner.Outcome) -> Void
  ) -> () -> Void {
    probes.put(probe, to: process, then: answer)
  }

  /// Whether something has come in since the last look. While a question is out, only the look is made that
  /// takes what came with it.
  func lookAtTraffic(then: @escaping (_ hasTraffic: Bool) -> Void) {
    guard let worker else { return then(false) }
    activity.lookAtActivity(of: worker) { then($0?.hasTraffic == true) }
  }

  func wasActive() {
    guard let worker else { return }
    worker.sample.sign = .traffic
    driver.send(.activity(worker.id))
  }

  /// - Parameter why: it fails; a sentence's beginning.
  func reportUnhealthy(_ why: String) {
    if let worker { driver.send(.unhealthy(worker.id, why)) }
  }

  /// Its answer has come, and its connection is closed.
  func questionHasEnded() {
    if let worker { supervisor.resumeUnasked(worker) }
  }
}
