import Control
import Policy

extension CodedText {
  /// How workers are suspended.
  static func freezer(hasCgroups: Bool) -> CodedText {
    hasCgroups
      ? CodedText("cgroup_v2_freezer", "cgroup-v2 freezer") : CodedText("sigstop", "SIGSTOP")
  }
}

extension LifecyclePolicy {
  /// Whether the daemon's policy hibernates workers. A worker's own policy may differ.
  var permittedHibernation: CodedText {
    if !hibernate.enabled {
      return CodedText("disabled", "the policy hibernates no worker (hibernate.enabled: false)")
    }
    if mode == .shadow {
      return CodedText("shadow_mode", "shadow mode: decisions are logged, not applied")
    }
    return CodedText("enabled", "the policy hibernates workers")
  }
}
