import Policy

/// Why a suspended worker isn't hibernated now.
enum HibernationObstacle: Hashable, Sendable {
  case disabled
  case refusedForGood(String)
  /// The footprint since suspension is still being measured.
  case measuring
  case unmeasured
  case tooBig(ByteCount, limit: ByteCount)
  case tooSmall(ByteCount, limit: ByteCount)
  case slowerThanRelaunch(resume: Duration, relaunch: Duration)
  case coolingDown(Duration, of: Duration)
  case failedLately(String, retryIn: Duration)
  case onlyUnderPressure
  case tooEarly(Duration, of: Duration)
}

extension WorkerRecord {
  /// What asks for hibernation decides which rules count. A person's word overrides those that
  /// are a matter of economy, not those that are a matter of size or of possibility.
  enum Occasion { case automatic, pressure, request }

  /// How long a measurement may take before the last known footprint has to do.
  static let patienceForMeasurement = Duration.seconds(5)

  var measuredBy: Instant { run.suspendedSince + Self.patienceForMeasurement }

  func obstacle(to occasion: Occasion, at now: Instant) -> HibernationObstacle? {
    let rules = policy.hibernate
    guard rules.enabled else { return .disabled }
    if let why = run.hibernation.permanentRefusal { return .refusedForGood(why) }
    guard run.isMeasuredAsleep || now >= measuredBy else { return .measuring }
    guard let footprint = run.footprint else { return .unmeasured }
    if let limit = rules.maxFootprint, footprint > limit {
      return .tooBig(footprint, limit: limit)
    }
    if occasion == .request { return nil }
    if footprint < rules.minFootprint {
      return .tooSmall(footprint, limit: rules.minFootprint)
    }
    if rules.onlyIfFasterThanRelaunch, let launchCost, expectedResume > launchCost {
      return .slowerThanRelaunch(resume: expectedResume, relaunch: launchCost)
    }
    return obstacleOfTime(to: occasion, at: now)
  }

  private func obstacleOfTime(to occasion: Occasion, at now: Instant) -> HibernationObstacle? {
    let rules = policy.hibernate
    if let over = cooldownOver, now < over {
      return .coolingDown(rules.cooldown - (over - now), of: rules.cooldown)
    }
    if let retryAt = run.hibernation.retryAt, now < retryAt {
      return .failedLately(run.hibernation.lastFailure ?? "", retryIn: retryAt - now)
    }
    if occasion == .pressure { return nil }
    guard let after = rules.after else { return .onlyUnderPressure }
    let slept = now - run.suspendedSince
    return slept < after ? .tooEarly(slept, of: after) : nil
  }

  var cooldownOver: Instant? {
    run.hibernation.lastResume.map { $0 + policy.hibernate.cooldown }
  }

  /// Learned; before the first time 5 ms + 1 ms per MB, which is about what eager resume of a
  /// python worker takes.
  var expectedResume: Duration {
    resumeCost ?? .microseconds(5000 + footprint.bytes * 1000 / (1 << 20))
  }

  /// The instants at which a verdict may change by time alone.
  var hibernationDeadlines: [Instant] {
    guard state == .suspended else { return [] }
    let after = policy.hibernate.after.map { run.suspendedSince + $0 }
    return [measuredBy, cooldownOver, run.hibernation.retryAt, after].compactMap { $0 }
  }
}
