import Policy

// The obstacles with the key that decides, and the time after which they end by themselves.

extension SuspensionObstacle {
  var described: Obstacle {
    switch self {
    case .shedding: Obstacle(code, sentence, key: "background.shed_deadline")
    case .trimming: Obstacle(code, sentence, key: "trim")
    case .task(_, let left): Obstacle(code, sentence, key: "background.task_limit", clearsIn: left)
    case .held(let left):
      Obstacle(code, sentence, key: "background.safe_point.hold", clearsIn: left)
    case .failedLately(_, let wait): Obstacle(code, sentence, key: nil, clearsIn: wait)
    case .staysAwake(_, let wait): Obstacle(code, sentence, key: "trim.after", clearsIn: wait)
    case .never: Obstacle(code, sentence, key: "background.suspend_after")
    case .notQuiet(let left):
      Obstacle(code, sentence, key: FootprintLimits.Step.hibernate.path, clearsIn: left)
    case .grace(let spent, let whole, _):
      Obstacle(code, sentence, key: "background.suspend_after", clearsIn: whole - spent)
    case .heartbeat(let left):
      Obstacle(code, sentence, key: "background.heartbeat.for", clearsIn: left)
    case .timer(let left):
      Obstacle(code, sentence, key: "background.wake_for_timers", clearsIn: left)
    case .launchedLately(let spent, let minUptime):
      Obstacle(
        code, sentence, key: "background.safe_point.after_launch", clearsIn: minUptime - spent)
    case .wokenLately(let spent, let minUptime):
      Obstacle(code, sentence, key: "background.safe_point.after_wake", clearsIn: minUptime - spent)
    case .fileLocks(_, let left):
      Obstacle(code, sentence, key: "background.safe_point.file_locks", clearsIn: left)
    }
  }
}

extension HibernationObstacle {
  var described: Obstacle {
    switch self {
    case .disabled: Obstacle(code, sentence, key: "hibernate.enabled")
    case .refusedForGood, .measuring, .unmeasured: Obstacle(code, sentence, key: nil)
    case .tooBig(let size, let limit):
      Obstacle(code, sentence, key: "hibernate.max_footprint", measured: size, limit: limit)
    case .tooSmall(let size, let limit):
      Obstacle(code, sentence, key: "hibernate.min_footprint", measured: size, limit: limit)
    case .overDiskBudget(let held, let adding, let limit):
      Obstacle(code, sentence, key: "hibernate.disk.budget", measured: held + adding, limit: limit)
    case .overDailyWrites(let written, let adding, let limit):
      Obstacle(
        code, sentence, key: "hibernate.disk.daily_writes", measured: written + adding, limit: limit
      )
    case .diskNearlyFull(let free, let adding, let minFree):
      Obstacle(
        code, sentence, key: "hibernate.disk.min_free", measured: free - adding, limit: minFree)
    case .slowerThanRelaunch:
      Obstacle(code, sentence, key: "hibernate.only_if_faster_than_relaunch")
    case .coolingDown(let spent, let whole):
      Obstacle(code, sentence, key: "hibernate.cooldown", clearsIn: whole - spent)
    case .failedLately(_, let wait): Obstacle(code, sentence, key: nil, clearsIn: wait)
    case .onlyUnderPressure: Obstacle(code, sentence, key: "hibernate.after")
    case .tooEarly(let spent, let whole, _):
      Obstacle(code, sentence, key: "hibernate.after", clearsIn: whole - spent)
    }
  }
}

extension Cause {
  /// The key that decided. `nil`: none did.
  var key: String? {
    switch self {
    case .displaced: "foreground.max"
    case .idle: "foreground.idle_after"
    case .active: "foreground.mode"
    case .graceOver: "background.suspend_after"
    case .suspendedFor: "hibernate.after"
    case .heartbeat: "background.heartbeat"
    case .timer, .quietAgain: "background.wake_for_timers"
    case .pressure(let level): "ladder.\(level.name)"
    case .footprint(let excess), .restartedForFootprint(let excess): excess.step.path
    case .watchdog: "watchdog"
    case .added, .requested, .starting, .launched, .becameReady, .wakeNeeded, .wokenWith,
      .exited, .failed, .adopted,
      .released, .succeeded, .led:
      nil
    }
  }
}
