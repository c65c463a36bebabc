import Policy

// Why a worker isn't hibernated, with the numbers, and what would have to change.

extension Engine {
  func hibernationVerdict(of worker: WorkerRecord, at now: Instant) -> Verdict? {
    switch worker.state {
    case .terminated, .terminating, .hibernating, .hibernated: nil
    case .launching, .foreground, .resuming:
      Verdict(
        code: "not_suspended",
        sentence: "only suspended workers are hibernated, and it is \(worker.state.text)")
    case .background:
      Verdict(
        code: "not_suspended",
        sentence: "not suspended yet: \(suspensionVerdict(of: worker, at: now))")
    case .suspending: Verdict(code: "being_suspended", sentence: "being suspended now")
    case .suspended: suspendedVerdict(of: worker, at: now)
    }
  }

  private func suspensionVerdict(of worker: WorkerRecord, at now: Instant) -> String {
    if let obstacle = worker.suspensionObstacle(at: now) { return obstacle.sentence }
    return isShadow(worker) ? "shadow mode" : "being checked for file locks"
  }

  private func suspendedVerdict(of worker: WorkerRecord, at now: Instant) -> Verdict? {
    if let obstacle = obstacle(worker, to: .automatic, at: now) {
      return Verdict(code: obstacle.code, sentence: obstacle.verdict)
    }
    guard isShadow(worker) else { return nil }
    return Verdict(
      code: "shadow_mode", sentence: "shadow mode: it would have been hibernated")
  }
}

extension HibernationObstacle {
  /// The obstacle as a clause that follows a colon.
  var sentence: String {
    switch self {
    case .disabled: "hibernate.enabled is false"
    case .refusedForGood(let reason): "can't be hibernated before its next launch: \(reason)"
    case .measuring: "its footprint is being measured"
    case .unmeasured: "its footprint is not known yet"
    case .tooBig(let footprint, let limit):
      "its footprint, \(footprint), is over hibernate.max_footprint, \(limit)"
    case .tooSmall(let footprint, let limit):
      "its footprint, \(footprint), is under hibernate.min_footprint, \(limit)"
    case .overDiskBudget(let held, let adding, let limit):
      "images take \(held) of disk; \(adding) more would exceed hibernate.disk.budget, \(limit)"
    case .overDailyWrites(let written, let adding, let limit):
      "\(written) were written to images in 24 h; \(adding) more would exceed "
        + "hibernate.disk.daily_writes, \(limit)"
    case .diskNearlyFull(let free, let adding, let minFree):
      "the disk has \(free) free; \(adding) less would fall below hibernate.disk.min_free, "
        + "\(minFree)"
    case .slowerThanRelaunch(let resume, let relaunch):
      "a resume takes about \(resume.text), longer than a relaunch, \(relaunch.text)"
    case .coolingDown(let time, let whole):
      "resumed \(time.text) ago, within hibernate.cooldown, \(whole.text)"
    case .failedLately(let reason, let wait):
      "the last attempt failed (\(reason)); next attempt in \(wait.text)"
    case .onlyUnderPressure:
      "hibernate.after is never: only memory pressure or a request hibernates it"
    case .tooEarly(let slept, let after, let raised):
      "suspended for \(slept.text) of hibernate.after \(after.text)"
        + (raised.map { " (\($0.sentence))" } ?? "")
    }
  }

  /// The clause that `status` shows.
  var verdict: String {
    switch self {
    case .tooEarly: "not yet: \(sentence)"
    default: sentence
    }
  }
}
