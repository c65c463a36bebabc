import Lifecycle
import Policy
import Supervision

/// What a worker's `LivenessMonitor` and `ShedOverHTTP` get of the daemon, for one run.
final class LivenessOfWorker: LivenessHost {
  private unowned let supervisor: LivenessSupervisor
  private let driver: EngineDriver
  private let probes: any ProbeQuestions
  private let activity: ActivitySampler
  private weak var runtime: WorkerUnit?
  private let process: WorkerProcess

  init(
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

  var mayBeAsked: Bool {
    guard let runtime, runtime.process === process, !runtime.hasExited, !runtime.isBusy else {
      return false
    }
    return driver.state.state(of: runtime.id)?.runs == true
  }

  var watchesTraffic: Bool { runtime?.traffic != nil }

  func ask(
    _ probe: Policy.Probe, then answer: @escaping (ProbeRunner.Outcome) -> Void
  ) -> () -> Void {
    probes.put(probe, to: process, then: answer)
  }

  func lookAtTraffic(then: @escaping (_ hasTraffic: Bool) -> Void) {
    guard let runtime else { return then(false) }
    activity.lookAtActivity(of: runtime) { then($0?.hasTraffic == true) }
  }

  func wasActive() {
    guard let runtime else { return }
    runtime.sample.sign = .traffic
    driver.send(.activity(runtime.id))
  }

  func isUnhealthy(_ why: String) {
    if let runtime { driver.send(.unhealthy(runtime.id, why)) }
  }

  func questionHasEnded() {
    if let runtime { supervisor.resumeUnasked(runtime) }
  }
}
