import Policy

// Why a worker isn't hibernated, with the numbers, and what would have to change.

extension Engine {
  func hibernationVerdict(of worker: WorkerRecord, at now: Instant) -> Verdict? {
    switch worker.state {
    case .terminated, .terminating, .hibernating, .hibernated: nil
    case .launching, .foreground, .resuming:
      Verdict(
        code: "not_suspended",
        sentence: "only a suspended worker is hibernated, and it is \(worker.state.spoken)")
    case .background:
      Verdict(
        code: "not_suspended",
        sentence: "it isn't suspended yet: \(suspensionVerdict(of: worker, at: now))")
    case .suspending: Verdict(code: "being_suspended", sentence: "it is just being suspended")
    case .suspended: suspendedVerdict(of: worker, at: now)
    }
  }

  private func suspensionVerdict(of worker: WorkerRecord, at now: Instant) -> String {
    if let obstacle = worker.suspensionObstacle(at: now) { return obstacle.sentence }
    return isShadow(worker) ? "the policy is in shadow mode" : "it is being looked for file locks"
  }

  private func suspendedVerdict(of worker: WorkerRecord, at now: Instant) -> Verdict? {
    if let obstacle = obstacle(worker, to: .automatic, at: now) {
      return Verdict(code: obstacle.code, sentence: obstacle.verdict)
    }
    guard isShadow(worker) else { return nil }
    return Verdict(
      code: "shadow_mode", sentence: "the policy is in shadow mode: it would have been hibernated")
  }
}

extension HibernationObstacle {
  /// To follow "because" or a colon.
  var sentence: String {
    switch self {
    case .disabled: "hibernate.enabled is false"
    case .refusedForGood(let why): "it can't be hibernated until it is relaunched: \(why)"
    case .measuring: "its footprint is being measured"
    case .unmeasured: "its footprint isn't known"
    case .tooBig(let footprint, let limit):
      "its footprint of \(footprint) is over hibernate.max_footprint, \(limit)"
    case .tooSmall(let footprint, let limit):
      "its footprint of \(footprint) is under hibernate.min_footprint, \(limit)"
    case .overDiskBudget(let held, let adding, let limit):
      "images hold \(held), and \(adding) more would be over hibernate.disk.budget, \(limit)"
    case .overDailyWrites(let written, let adding, let limit):
      "\(written) were written to images in 24 hours, and \(adding) more would be over "
        + "hibernate.disk.daily_writes, \(limit)"
    case .diskNearlyFull(let free, let adding, let least):
      "the disk has \(free) free, and \(adding) less would be under hibernate.disk.min_free, "
        + "\(least)"
    case .slowerThanRelaunch(let resume, let relaunch):
      "resuming would take about \(resume.spoken), and a relaunch takes \(relaunch.spoken)"
    case .coolingDown(let time, let whole):
      "it was resumed \(time.spoken) ago, within hibernate.cooldown, \(whole.spoken)"
    case .failedLately(let why, let wait):
      "the last attempt failed (\(why)); it is tried again in \(wait.spoken)"
    case .onlyUnderPressure: "hibernate.after is never: only pressure or a request does it"
    case .tooEarly(let slept, let after, let raised):
      "suspended for \(slept.spoken) of hibernate.after \(after.spoken)"
        + (raised.map { " (\($0.sentence))" } ?? "")
    }
  }

  /// As it stands in `status`.
  var verdict: String {
    switch self {
    case .tooEarly: "nothing has been hibernated yet: \(sentence)"
    default: sentence
    }
  }
}
