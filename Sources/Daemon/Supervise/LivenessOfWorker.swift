import Lifecycle
import Policy
import Supervision

/// What a worker's `LivenessMonitor` and `ShedOverHTTP` get of the daemon, for one run.
final class LivenessOfWorker: LivenessHost {
  private unowned let daemon: Daemon
  private weak var runtime: WorkerRuntime?
  private let process: WorkerProcess

  init(_ daemon: Daemon, _ runtime: WorkerRuntime, _ process: WorkerProcess) {
    self.daemon = daemon
    self.runtime = runtime
    self.process = process
  }

  var mayBeAsked: Bool {
    guard let runtime, runtime.process === process, !runtime.hasExited, !runtime.isBusy else {
      return false
    }
    return daemon.engine.state(of: runtime.id)?.runs == true
  }

  var watchesTraffic: Bool { runtime?.traffic != nil }

  func ask(
    _ probe: Policy.Probe, then answer: @escaping (ProbeRunner.Outcome) -> Void
  ) -> () -> Void {
    let question = daemon.ask(probe, process, then: answer)
    return { [unowned daemon] in daemon.drop(question) }
  }

  func lookAtTraffic(then: @escaping (_ hasTraffic: Bool) -> Void) {
    guard let runtime else { return then(false) }
    daemon.lookAtActivity(of: runtime) { then($0?.hasTraffic == true) }
  }

  func wasActive() {
    if let runtime { daemon.driver.send(.activity(runtime.id)) }
  }

  func isUnhealthy(_ why: String) {
    if let runtime { daemon.driver.send(.unhealthy(runtime.id, why)) }
  }

  func questionHasEnded() {
    if let runtime { daemon.resumeUnasked(runtime) }
  }
}

extension Daemon {
  /// `transition`: nil: the configuration has changed.
  func followLiveness(of runtime: WorkerRuntime, _ transition: Transition?) {
    let state = transition?.to ?? engine.state(of: runtime.id) ?? .terminated
    guard let probe = runtime.configuration.liveness, runtime.external == nil,
      let process = runtime.process, state == .foreground || state == .background
    else { return restLiveness(of: runtime, state) }
    if runtime.liveness?.probe != probe {
      restLiveness(of: runtime, .terminated)
      runtime.liveness = LivenessMonitor(
        probe, loop, LivenessOfWorker(self, runtime, process))
    }
    let wasAsleep = transition?.from == .resuming
    runtime.liveness?.runs(
      since: wasAsleep ? EventLoop.now : max(restarts.launchedAt(of: runtime.id), .zero))
  }

  private func restLiveness(of runtime: WorkerRuntime, _ state: WorkerState) {
    switch state {
    // Its answer is waited for before the worker is frozen; see `whenUnasked`.
    case .suspending: runtime.liveness?.pause()
    case .terminating, .terminated:
      runtime.liveness?.end()
      runtime.liveness = nil
      runtime.whenUnasked = nil
    default: runtime.liveness?.rest()
    }
  }

  /// Does it now, or when the question that is out has been answered: a connection that waits in a
  /// frozen worker's queue would wake it.
  func whenUnasked(_ runtime: WorkerRuntime, _ action: @escaping () -> Void) {
    guard runtime.isAsked else { return action() }
    runtime.whenUnasked = { [unowned self] in
      if engine.state(of: runtime.id) == .suspending, !runtime.hasExited { action() }
    }
  }

  /// A question has ended, and its connection is gone.
  func resumeUnasked(_ runtime: WorkerRuntime) {
    guard !runtime.isAsked, let action = runtime.whenUnasked else { return }
    runtime.whenUnasked = nil
    action()
  }
}
