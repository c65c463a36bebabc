import Policy

// The obstacles for programs and for people: each with its code, a clause that follows a colon, the
// key that decides, and the time after which it ends by itself.

extension SuspensionObstacle {
  var sentence: String { described.sentence }

  var described: Obstacle {
    switch self {
    case .shedding:
      Obstacle(
        "shedding", "it is still freeing memory, as requested", key: "background.shed_deadline")
    case .trimming:
      Obstacle("trimming", "its memory is being trimmed or filled", key: "trim")
    case .task(let name, let left):
      Obstacle(
        "background_task", "its background task \(name) may run for another \(left.text)",
        key: "background.task_limit", clearsIn: left)
    case .held(let left):
      Obstacle(
        "held", "it asks not to be suspended (X_DORMOUSE_HOLD=1), for \(left.text) at most",
        key: "background.safe_point.hold", clearsIn: left)
    case .failedLately(let reason, let wait):
      Obstacle(
        "failed_lately", "the last attempt failed: \(reason); next attempt in \(wait.text)",
        key: nil, clearsIn: wait)
    case .staysAwake(let reason, let wait):
      Obstacle(
        "stays_awake", "\(reason); next check in \(wait.text)", key: "trim.after", clearsIn: wait)
    case .never:
      Obstacle(
        "suspend_after_never", "background.suspend_after is never", key: "background.suspend_after")
    case .notQuiet(let left):
      Obstacle(
        "not_quiet",
        "its footprint is over limits.footprint.hibernate, and it was used a moment ago; "
          + "\(left.text) left", key: FootprintLimits.Step.hibernate.path, clearsIn: left)
    case .grace(let spent, let grace, let raised):
      Obstacle(
        "grace",
        "in the background for \(spent.text) of background.suspend_after \(grace.text)"
          + (raised.map { " (\($0.sentence))" } ?? ""), key: "background.suspend_after",
        clearsIn: grace - spent)
    case .heartbeat(let left):
      Obstacle(
        "heartbeat", "its heartbeat lasts another \(left.text)",
        key: "background.heartbeat.for", clearsIn: left)
    case .timer(let left):
      Obstacle(
        "own_timer",
        "woken by its own timer: suspended again after \(TimerTick.quiet.text) without work, in "
          + "\(left.text) at the earliest", key: "background.wake_for_timers", clearsIn: left)
    case .launchedLately(let up, let minUptime):
      Obstacle(
        "launched_lately",
        "launched \(up.text) ago, within background.safe_point.after_launch, \(minUptime.text)",
        key: "background.safe_point.after_launch", clearsIn: minUptime - up)
    case .wokenLately(let up, let minUptime):
      Obstacle(
        "woken_lately",
        "woken \(up.text) ago, within background.safe_point.after_wake, \(minUptime.text)",
        key: "background.safe_point.after_wake", clearsIn: minUptime - up)
    case .fileLocks(let count, let left):
      Obstacle(
        "file_locks",
        "it holds \(count == 1 ? "a file lock" : "\(count) file locks"), "
          + "and has \(left.text) left to release \(count == 1 ? "it" : "them")",
        key: "background.safe_point.file_locks", clearsIn: left)
    }
  }
}

extension HibernationObstacle {
  var sentence: String { described.sentence }

  var described: Obstacle {
    switch self {
    case .disabled: Obstacle("disabled", "hibernate.enabled is false", key: "hibernate.enabled")
    case .refusedForGood(let reason):
      Obstacle("refused", "can't be hibernated before its next launch: \(reason)", key: nil)
    case .measuring: Obstacle("measuring", "its footprint is being measured", key: nil)
    case .unmeasured: Obstacle("unmeasured", "its footprint is not known yet", key: nil)
    case .tooBig(let size, let limit):
      Obstacle(
        "too_big", "its footprint, \(size), is over hibernate.max_footprint, \(limit)",
        key: "hibernate.max_footprint", measured: size, limit: limit)
    case .tooSmall(let size, let limit):
      Obstacle(
        "too_small", "its footprint, \(size), is under hibernate.min_footprint, \(limit)",
        key: "hibernate.min_footprint", measured: size, limit: limit)
    case .overDiskBudget(let held, let adding, let limit):
      Obstacle(
        "over_disk_budget",
        "images take \(held) of disk; \(adding) more would exceed hibernate.disk.budget, \(limit)",
        key: "hibernate.disk.budget", measured: held + adding, limit: limit)
    case .overDailyWrites(let written, let adding, let limit):
      Obstacle(
        "over_daily_writes",
        "\(written) were written to images in 24 h; \(adding) more would exceed "
          + "hibernate.disk.daily_writes, \(limit)",
        key: "hibernate.disk.daily_writes", measured: written + adding, limit: limit)
    case .diskNearlyFull(let free, let adding, let minFree):
      Obstacle(
        "disk_nearly_full",
        "the disk has \(free) free; \(adding) less would fall below hibernate.disk.min_free, "
          + "\(minFree)",
        key: "hibernate.disk.min_free", measured: free - adding, limit: minFree)
    case .slowerThanRelaunch(let resume, let relaunch):
      Obstacle(
        "slower_than_relaunch",
        "a resume takes about \(resume.text), longer than a relaunch, \(relaunch.text)",
        key: "hibernate.only_if_faster_than_relaunch")
    case .coolingDown(let spent, let whole):
      Obstacle(
        "cooling_down", "resumed \(spent.text) ago, within hibernate.cooldown, \(whole.text)",
        key: "hibernate.cooldown", clearsIn: whole - spent)
    case .failedLately(let reason, let wait):
      Obstacle(
        "failed_lately", "the last attempt failed (\(reason)); next attempt in \(wait.text)",
        key: nil, clearsIn: wait)
    case .onlyUnderPressure:
      Obstacle(
        "only_under_pressure",
        "hibernate.after is never: only memory pressure or a request hibernates it",
        key: "hibernate.after")
    case .tooEarly(let slept, let after, let raised):
      Obstacle(
        "too_early",
        "suspended for \(slept.text) of hibernate.after \(after.text)"
          + (raised.map { " (\($0.sentence))" } ?? ""), key: "hibernate.after",
        clearsIn: after - slept)
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
