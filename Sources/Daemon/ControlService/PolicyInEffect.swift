import Control
import Hibernation
import Lifecycle
import Policy
import PolicyFile

// These functions make the report of `policy show --effective`: every value of the policy that is
// in effect now, and where it comes from.
extension ControlService {
  /// The values of a worker's policy.
  ///
  /// - Parameters:
  ///   - policy: the worker's policy, with the values of its configuration.
  ///   - isChosen: whether the request for its adoption has chosen it.
  func policyValues(
    of snapshot: WorkerSnapshot, _ policy: LifecyclePolicy, isChosen: Bool
  ) -> [PolicyValueReport] {
    let name = snapshot.profile.rule.map(Origins.name(ofRule:)) ?? snapshot.worker.name
    var values = EffectivePolicy(
      isChosen ? engine.policy : policy, origins: origins, worker: name)
    if isChosen {
      for value in PolicyFile.values(of: policy) {
        values.replace(
          value.path, by: value.text, .request, because: "chosen when it was adopted")
      }
    }
    applyMode(snapshot, to: &values)
    if snapshot.protection == .request {
      values.replace(
        "terminate.for_memory", by: "false", .request, because: "set by `dormouse protect`")
    }
    for backOff in engine.idleBackOffs(of: snapshot.worker, at: now) {
      values.replace(
        backOff.key.path, by: backOff.idle.policyText, .learned, because: backOff.sentence)
    }
    return reports(of: values)
  }

  func reports(of values: EffectivePolicy) -> [PolicyValueReport] {
    var values = values
    if let resume = resumeOverride {
      values.replace(
        "hibernate.resume", by: resume.rawValue, .environment,
        because: "DORMOUSE_RESUME is set in the daemon's environment")
    }
    if isWrapper { values.markWrapper() }
    return values.values.map(PolicyValueReport.init)
  }

  /// Applies the mode. Shadow mode is on if the machine's policy or the worker's turns it on,
  /// unless the operator has asked for another mode.
  private func applyMode(_ snapshot: WorkerSnapshot, to values: inout EffectivePolicy) {
    let mode = (snapshot.isShadow ? LifecyclePolicy.Mode.shadow : .enforce).rawValue
    if snapshot.isModeByRequest {
      let verb = snapshot.isShadow ? "shadow" : "enforce"
      values.replace("mode", by: mode, .request, because: "set by `dormouse \(verb)`")
    } else {
      values.replace("mode", by: mode, from: origins.origin(of: "mode"))
    }
  }
}

extension PolicyValueReport {
  /// Makes the report of one value. Only a running daemon's values have changes.
  public init(_ value: EffectivePolicy.Value) {
    self.init(
      key: value.path, value: value.text,
      from: value.change?.source.rawValue ?? value.origin.layer.rawValue, file: value.origin.file,
      line: value.origin.position?.line)
    declared = value.change?.declared
    text = value.change?.text
  }
}
