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

extension SuspensionObstacle {
  var code: String {
    switch self {
    case .shedding: "shedding"
    case .trimming: "trimming"
    case .task: "background_task"
    case .held: "held"
    case .failedLately: "failed_lately"
    case .staysAwake: "stays_awake"
    case .never: "suspend_after_never"
    case .notQuiet: "not_quiet"
    case .grace: "grace"
    case .heartbeat: "heartbeat"
    case .timer: "own_timer"
    case .launchedLately: "launched_lately"
    case .wokenLately: "woken_lately"
    case .fileLocks: "file_locks"
    }
  }
}

extension HibernationObstacle {
  var code: String {
    switch self {
    case .disabled: "disabled"
    case .refusedForGood: "refused"
    case .measuring: "measuring"
    case .unmeasured: "unmeasured"
    case .tooBig: "too_big"
    case .tooSmall: "too_small"
    case .overDiskBudget: "over_disk_budget"
    case .overDailyWrites: "over_daily_writes"
    case .diskNearlyFull: "disk_nearly_full"
    case .slowerThanRelaunch: "slower_than_relaunch"
    case .coolingDown: "cooling_down"
    case .failedLately: "failed_lately"
    case .onlyUnderPressure: "only_under_pressure"
    case .tooEarly: "too_early"
    }
  }
}

/// An obstacle as a code for programs and a sentence for people.
public struct Verdict: Hashable, Sendable {
  public var code: String
  public var sentence: String
}
