import Policy

// Codes of the engine's reasons, for programs. They are in snake_case, and never change their
// meaning. The sentences beside them may change in any version.

extension Cause {
  /// The reason as a code. It contains no numbers; `sentence` does.
  public var code: String {
    switch self {
    case .added: "never_started"
    case .requested(let verb), .starting(_, let verb): "requested_\(verb.rawValue)"
    case .launched: "launched"
    case .becameReady: "became_ready"
    case .displaced: "displaced"
    case .idle: "idle"
    case .active: "active"
    case .graceOver: "grace_over"
    case .wakeNeeded: "wake_needed"
    case .suspendedFor: "suspended_long_enough"
    case .heartbeat: "heartbeat"
    case .timer: "own_timer"
    case .wokenWith: "woken_with"
    case .quietAgain: "quiet_again"
    case .pressure: "pressure"
    case .footprint: "footprint_limit"
    case .restartedForFootprint: "restarted_for_footprint"
    case .watchdog: "watchdog"
    case .exited(let status): status.code
    case .failed: "attempt_failed"
    case .adopted: "adopted"
    case .released: "released"
    case .succeeded: "succeeded"
    case .led: "led"
    }
  }
}

/// The kind of end as a code.
extension ExitStatus {
  public var code: String {
    switch self {
    case .exited: "exited"
    case .signaled: "signaled"
    case .outOfMemory: "out_of_memory"
    case .unknown: "end_unknown"
    }
  }
}

/// An obstacle as a code for programs and a sentence for people.
public struct Verdict: Hashable, Sendable {
  public var code: String
  public var sentence: String
}
