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

  /// What is needed to ask in this run of a worker.
  func host(for runtime: WorkerUnit, _ process: WorkerProcess) -> LivenessOfWorker {
    LivenessOfWorker(
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
      runtime.liveness = LivenessMonitor(probe, timers: timers, host: host(for: runtime, process))
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
