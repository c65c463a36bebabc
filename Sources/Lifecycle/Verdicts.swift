import Policy

// Why a worker isn't hibernated, with the numbers, and what would have to change.

extension WorkerRecord {
  func hibernationVerdict(at now: Instant, isShadow: Bool) -> String? {
    switch state {
    case .terminated, .terminating, .hibernating, .hibernated: nil
    case .launching, .foreground, .resuming:
      "only a suspended worker is hibernated, and it is \(state.spoken)"
    case .background: "it isn't suspended yet: \(suspensionVerdict(at: now, isShadow: isShadow))"
    case .suspending: "it is just being suspended"
    case .suspended: suspendedVerdict(at: now, isShadow: isShadow)
    }
  }

  private func suspensionVerdict(at now: Instant, isShadow: Bool) -> String {
    if run.shed != nil || run.owesBackgroundShed || run.owesWarning {
      return "it is still giving memory back"
    }
    if let task = run.tasks.first {
      let left = max(.zero, end(of: task) - now).spoken
      return "its background task \(task.name) may go on for \(left)"
    }
    if case .failed(let why) = cause { return "the last attempt failed: \(why)" }
    guard let grace = policy.background.suspendAfter else {
      return "background.suspend_after is never"
    }
    let time = "in the background for \((now - since).spoken)"
    return now - since < grace || !isShadow
      ? "\(time) of background.suspend_after \(grace.spoken)" : "the policy is in shadow mode"
  }

  private func suspendedVerdict(at now: Instant, isShadow: Bool) -> String? {
    if let obstacle = obstacle(to: .automatic, at: now) {
      return obstacle.verdict
    }
    return isShadow ? "the policy is in shadow mode: it would have been hibernated" : nil
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
    case .slowerThanRelaunch(let resume, let relaunch):
      "resuming would take about \(resume.spoken), and a relaunch takes \(relaunch.spoken)"
    case .coolingDown(let time, let whole):
      "it was resumed \(time.spoken) ago, within hibernate.cooldown, \(whole.spoken)"
    case .failedLately(let why, let wait):
      "the last attempt failed (\(why)); it is tried again in \(wait.spoken)"
    case .onlyUnderPressure: "hibernate.after is never: only pressure or a request does it"
    case .tooEarly(let slept, let after):
      "suspended for \(slept.spoken) of hibernate.after \(after.spoken)"
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
