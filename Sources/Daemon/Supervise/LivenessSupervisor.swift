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

  func questions(to runtime: WorkerUnit, _ process: WorkerProcess) -> RunQuestions {
    RunQuestions(
      supervisor: self, driver: driver, probes: probes, activity: activity, runtime: runtime,
      process: process)
  }

  /// `transition`: nil: the configuration has changed.
  func followLiveness(of runtime: WorkerUnit, _ transition: Transition?) {
    let state = transition?.to ?? driver.state.state(of: runtime.id) ?? .terminated
    guard let probe = runtime.configuration.liveness, runtime.external == nil,
      let process = runtime.process, state == .foreground || state == .background
    else { return restLiveness(of: runtime, state) }
    if runtime.liveness?.probe != probe {
      restLiveness(of: runtime, .terminated)
      runtime.liveness = LivenessMonitor(
        probe, timers: timers, questions: questions(to: runtime, process))
    }
    let wasAsleep = transition?.from == .resuming
    runtime.liveness?.runs(
      since: wasAsleep ? timers.now : max(launchedAt(runtime.id), .zero))
  }

  private func restLiveness(of runtime: WorkerUnit, _ state: WorkerState) {
    switch state {
    // Its answer is waited for before the worker is frozen; see `onceUnasked`.
    case .suspending: runtime.liveness?.pause()
    case .terminating, .terminated:
      runtime.liveness?.end()
      runtime.liveness = nil
      runtime.whenUnasked = nil
    default: runtime.liveness?.rest()
    }
  }

  /// A probe has ended, and its connection is closed: performs what waits for that.
  func resumeUnasked(_ runtime: WorkerUnit) {
    guard !runtime.isAsked, let action = runtime.whenUnasked else { return }
    runtime.whenUnasked = nil
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
  private weak var runtime: WorkerUnit?
  private let process: WorkerProcess

  fileprivate init(
    supervisor: LivenessSupervisor, driver: EngineDriver, probes: any ProbeQuestions,
    activity: ActivitySampler, runtime: WorkerUnit, process: WorkerProcess
  ) {
    self.supervisor = supervisor
    self.driver = driver
    self.probes = probes
    self.activity = activity
    self.runtime = runtime
    self.process = process
  }

  /// It runs, and nothing is being done to it.
  var mayBeAsked: Bool {
    guard let runtime, runtime.process === process, !runtime.hasExited, !runtime.isBusy else {
      return false
    }
    return driver.state.state(of: runtime.id)?.runs == true
  }

  /// Whether what comes in on its connections counts as activity.
  var watchesTraffic: Bool { runtime?.traffic != nil }

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
    guard let runtime else { return then(false) }
    activity.lookAtActivity(of: runtime) { then($0?.hasTraffic == true) }
  }

  func wasActive() {
    guard let runtime else { return }
    runtime.sample.sign = .traffic
    driver.send(.activity(runtime.id))
  }

  /// - Parameter why: it fails; a sentence's beginning.
  func reportUnhealthy(_ why: String) {
    if let runtime { driver.send(.unhealthy(runtime.id, why)) }
  }

  /// Its answer has come, and its connection is closed.
  func questionHasEnded() {
    if let runtime { supervisor.resumeUnasked(runtime) }
  }
}
