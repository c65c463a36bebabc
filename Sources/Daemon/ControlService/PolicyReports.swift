import Control
import Lifecycle
import Policy
import PolicyFile

// `policy show --effective`: which policy runs.

extension Daemon {
  /// Of a worker, or of the machine: every value as it is applied now, and where it comes from.
  func policyInForce(_ request: ControlRequest) -> ControlResponse {
    let origins = settings.configuration.origins
    var values = PolicyInForce(engine.policy, origins: origins)
    if let name = request.worker {
      guard let runtime = workers[WorkerID(name)], let snapshot = engine.snapshot(of: runtime.id)
      else {
        return ControlResponse(
          id: request.id, result: .unknownWorker, text: "there is no worker named \(name)")
      }
      values = PolicyInForce(runtime.profile.policy, origins: origins, worker: name)
      applyMode(snapshot, to: &values)
      for backOff in engine.idleBackOffs(of: runtime.id, at: EventLoop.now) {
        values.replace(
          backOff.key.path, by: backOff.idle.policyText, .learned, because: backOff.sentence)
      }
    }
    if let resumeOverride {
      values.replace(
        "hibernate.resume", by: resumeOverride.rawValue, .environment,
        because: "DORMOUSE_RESUME is set in the daemon's environment")
    }
    if wrapped != nil { values.markWrapper() }
    var response = ControlResponse(
      id: request.id, result: .done,
      text: request.worker.map { "the policy in force for \($0)" } ?? "the policy in force")
    response.policy = values.values.map(PolicyValueReport.init)
    return response
  }

  /// Shadow mode is on where the machine's policy or the worker's wants it, unless a person asked for
  /// another mode.
  private func applyMode(_ snapshot: WorkerSnapshot, to values: inout PolicyInForce) {
    let mode = (snapshot.isShadow ? LifecyclePolicy.Mode.shadow : .enforce).rawValue
    if snapshot.isModeByRequest {
      let verb = snapshot.isShadow ? "shadow" : "enforce"
      values.replace("mode", by: mode, .request, because: "`dormouse \(verb)` was asked for")
    } else {
      values.replace("mode", by: mode, from: settings.configuration.origins.origin(of: "mode"))
    }
  }
}

extension PolicyValueReport {
  fileprivate init(_ value: PolicyInForce.Value) {
    self.init(
      key: value.path, value: value.text,
      from: value.change?.source.rawValue ?? value.origin.layer.rawValue, file: value.origin.file,
      line: value.origin.position?.line)
    declared = value.change?.declared
    text = value.change?.text
  }
}
