import Policy

/// Why a suspended worker isn't hibernated now.
enum HibernationObstacle: Hashable, Sendable {
  case disabled
  case refusedForGood(String)
  /// The footprint since the suspension is still being measured.
  case measuring
  case unmeasured
  case tooBig(ByteCount, limit: ByteCount)
  case tooSmall(ByteCount, limit: ByteCount)
  case overDiskBudget(held: ByteCount, adding: ByteCount, limit: ByteCount)
  case overDailyWrites(written: ByteCount, adding: ByteCount, limit: ByteCount)
  case diskNearlyFull(free: ByteCount, adding: ByteCount, minFree: ByteCount)
  case slowerThanRelaunch(resume: Duration, relaunch: Duration)
  case coolingDown(Duration, of: Duration)
  case failedLately(String, retryIn: Duration)
  case onlyUnderPressure
  case tooEarly(Duration, of: Duration, raised: IdleBackOff?)
}

extension HibernationObstacle {
  /// Whether more room on the disk, or another day, removes the obstacle.
  var isOfDisk: Bool {
    switch self {
    case .overDiskBudget, .overDailyWrites, .diskNearlyFull: true
    default: false
    }
  }
}

extension WorkerRecord {
  /// The occasion of a hibernation, which decides which rules count. A person's request overrides
  /// economic limits, the footprint's limits among them. It overrides neither the limits of the
  /// disk nor what makes a hibernation impossible.
  struct Occasion: OptionSet, Sendable {
    let rawValue: UInt8
    static let automatic = Occasion(rawValue: 1)
    static let pressure = Occasion(rawValue: 2)
    static let request = Occasion(rawValue: 4)
    /// Under pressure, when a worker would be terminated otherwise. Economic limits don't count.
    static let insteadOfEnd = Occasion(rawValue: 8)
  }

  /// The longest wait for a measurement. After it the last known footprint is used.
  static let measurementTimeout = Duration.seconds(5)

  var measuredBy: Instant { run.suspendedSince + Self.measurementTimeout }

  /// When the cool-down ends. It is for uses, which come in groups. Nothing follows a wake by the
  /// worker's own timer: after such a wake only what `early_wake` has learned about its images
  /// delays the next one.
  var cooldownOver: Instant? {
    if state == .suspended, cause == .quietAgain { return nil }
    return run.hibernation.lastResume.map { $0 + policy.hibernate.cooldown }
  }

  /// The instants at which time alone may change a verdict.
  func considerHibernation(_ next: inout EarliestDeadline) {
    next.consider(measuredBy)
    next.consider(cooldownOver)
    next.consider(run.hibernation.retryAt)
    next.consider(idleBeforeHibernation.map { $0.from + $0.after })
  }
}

extension Engine {
  /// The first obstacle, which is the one that decides.
  ///
  /// - Parameter besidesDisk: true: obstacles don't count that more room on the disk, or another
  ///   day, would remove.
  func obstacle(
    _ worker: WorkerRecord, to occasion: WorkerRecord.Occasion, besidesDisk: Bool = false,
    at now: Instant? = nil
  ) -> HibernationObstacle? {
    for check in Check.allCases where check.occasions.contains(occasion) {
      if besidesDisk, check == .disk { continue }
      if let obstacle = evaluate(check, for: worker, at: now ?? self.now) { return obstacle }
    }
    return nil
  }

  /// All obstacles, in the order in which they decide.
  func obstacles(
    _ worker: WorkerRecord, to occasion: WorkerRecord.Occasion, at now: Instant
  ) -> [HibernationObstacle] {
    Check.allCases.filter { $0.occasions.contains(occasion) }
      .compactMap { evaluate($0, for: worker, at: now) }
  }

  /// The checks, in the order in which they decide.
  private enum Check: CaseIterable {
    case policy, refusal, measurement, footprint, largest, disk, smallest, relaunch, cooldown
    case failure, idle

    var occasions: WorkerRecord.Occasion {
      switch self {
      case .policy, .refusal, .measurement, .footprint, .disk:
        [.automatic, .pressure, .request, .insteadOfEnd]
      case .failure: [.automatic, .pressure, .insteadOfEnd]
      case .largest, .smallest, .relaunch, .cooldown: [.automatic, .pressure]
      case .idle: .automatic
      }
    }
  }

  private func evaluate(
    _ check: Check, for worker: WorkerRecord, at now: Instant
  ) -> HibernationObstacle? {
    switch check {
    case .policy: return worker.policy.hibernate.enabled ? nil : .disabled
    case .refusal: return worker.run.hibernation.permanentRefusal.map { .refusedForGood($0) }
    case .measurement:
      return worker.run.isMeasuredAsleep || now >= worker.measuredBy ? nil : .measuring
    case .footprint: return worker.run.footprint == nil ? .unmeasured : nil
    case .largest:
      guard let limit = worker.policy.hibernate.maxFootprint, worker.movable > limit else {
        return nil
      }
      return .tooBig(worker.movable, limit: limit)
    case .disk: return diskObstacle(for: worker.expectedImage)
    case .smallest:
      let minFootprint = worker.policy.hibernate.minFootprint
      return worker.movable < minFootprint ? .tooSmall(worker.movable, limit: minFootprint) : nil
    case .relaunch:
      guard worker.policy.hibernate.onlyIfFasterThanRelaunch, let relaunch = worker.launchCost
      else { return nil }
      let expected = expectedResume(of: worker)
      return expected > relaunch ? .slowerThanRelaunch(resume: expected, relaunch: relaunch) : nil
    case .cooldown:
      guard let over = worker.cooldownOver, now < over else { return nil }
      let whole = worker.policy.hibernate.cooldown
      return .coolingDown(whole - (over - now), of: whole)
    case .failure:
      guard let retryAt = worker.run.hibernation.retryAt, now < retryAt else { return nil }
      return .failedLately(worker.run.hibernation.lastFailure ?? "", retryIn: retryAt - now)
    case .idle:
      guard let idle = worker.idleBeforeHibernation else { return .onlyUnderPressure }
      let slept = now - idle.from
      guard slept < idle.after else { return nil }
      return .tooEarly(slept, of: idle.after, raised: worker.hibernationBackOff)
    }
  }

  /// What has to change before an obstacle can end.
  func verdict(_ obstacle: HibernationObstacle, on worker: WorkerRecord) -> SleeperVerdict {
    switch obstacle {
    case .measuring: return .measuring
    case .slowerThanRelaunch(_, let relaunch) where !worker.resumeRate.isKnown:
      return .slow(highest: ResumeRate.highest(for: worker.footprint, within: relaunch))
    case _ where obstacle.isOfDisk: return .lacksRoom(image: worker.expectedImage)
    default: return .refused
    }
  }
}
