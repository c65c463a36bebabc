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
  case overDiskBudget(held: ByteCount, adding: ByteCount, limit: ByteCount)
  case overDailyWrites(written: ByteCount, adding: ByteCount, limit: ByteCount)
  case diskNearlyFull(free: ByteCount, adding: ByteCount, least: ByteCount)
  case slowerThanRelaunch(resume: Duration, relaunch: Duration)
  case coolingDown(Duration, of: Duration)
  case failedLately(String, retryIn: Duration)
  case onlyUnderPressure
  case tooEarly(Duration, of: Duration, raised: IdleBackOff?)
}

extension HibernationObstacle {
  /// More room on the disk, or another day, removes it.
  var isOfDisk: Bool {
    switch self {
    case .overDiskBudget, .overDailyWrites, .diskNearlyFull: true
    default: false
    }
  }
}

extension WorkerRecord {
  /// The cause of a hibernation decides which rules count. A person's request overrides rules of
  /// economy, the footprint's limits among them, but not rules of possibility and of the disk.
  struct Occasion: OptionSet, Sendable {
    let rawValue: UInt8
    static let automatic = Occasion(rawValue: 1)
    static let pressure = Occasion(rawValue: 2)
    static let request = Occasion(rawValue: 4)
  }

  /// The longest wait for a measurement; after it the last known footprint is used.
  static let patienceForMeasurement = Duration.seconds(5)

  var measuredBy: Instant { run.suspendedSince + Self.patienceForMeasurement }

  var cooldownOver: Instant? {
    run.hibernation.lastResume.map { $0 + policy.hibernate.cooldown }
  }

  /// The instants at which a verdict may change by time alone.
  func considerHibernation(_ next: inout EarliestDeadline) {
    next.consider(measuredBy)
    next.consider(cooldownOver)
    next.consider(run.hibernation.retryAt)
    next.consider(hibernationRest.map { $0.from + $0.after })
  }
}

extension Engine {
  /// The first obstacle, which is the one that decides.
  func obstacle(
    _ worker: WorkerRecord, to occasion: WorkerRecord.Occasion, at now: Instant? = nil
  ) -> HibernationObstacle? {
    let now = now ?? self.now
    for check in Self.checks where check.occasions.contains(occasion) {
      if let obstacle = check.find(self, worker, now) { return obstacle }
    }
    return nil
  }

  /// All obstacles, in the order in which they decide.
  func obstacles(
    _ worker: WorkerRecord, to occasion: WorkerRecord.Occasion, at now: Instant
  ) -> [HibernationObstacle] {
    Self.checks.filter { $0.occasions.contains(occasion) }.compactMap { $0.find(self, worker, now) }
  }

  private struct Check: Sendable {
    var occasions: WorkerRecord.Occasion
    var find: @Sendable (Engine, WorkerRecord, Instant) -> HibernationObstacle?
  }

  private static let always: WorkerRecord.Occasion = [.automatic, .pressure, .request]
  private static let unasked: WorkerRecord.Occasion = [.automatic, .pressure]

  private static let checks: [Check] = [
    Check(occasions: always) { _, worker, _ in
      worker.policy.hibernate.enabled ? nil : .disabled
    },
    Check(occasions: always) { _, worker, _ in
      worker.run.hibernation.permanentRefusal.map { .refusedForGood($0) }
    },
    Check(occasions: always) { _, worker, now in
      worker.run.isMeasuredAsleep || now >= worker.measuredBy ? nil : .measuring
    },
    Check(occasions: always) { _, worker, _ in worker.run.footprint == nil ? .unmeasured : nil },
    Check(occasions: unasked) { _, worker, _ in
      guard let limit = worker.policy.hibernate.maxFootprint, worker.movable > limit else {
        return nil
      }
      return .tooBig(worker.movable, limit: limit)
    },
    Check(occasions: always) { engine, worker, _ in engine.diskObstacle(for: worker.expectedImage)
    },
    Check(occasions: unasked) { _, worker, _ in
      let least = worker.policy.hibernate.minFootprint
      return worker.movable < least ? .tooSmall(worker.movable, limit: least) : nil
    },
    Check(occasions: unasked) { engine, worker, _ in
      let expected = engine.expectedResume(of: worker)
      guard worker.policy.hibernate.onlyIfFasterThanRelaunch, let relaunch = worker.launchCost,
        expected > relaunch
      else { return nil }
      return .slowerThanRelaunch(resume: expected, relaunch: relaunch)
    },
    Check(occasions: unasked) { _, worker, now in
      guard let over = worker.cooldownOver, now < over else { return nil }
      let whole = worker.policy.hibernate.cooldown
      return .coolingDown(whole - (over - now), of: whole)
    },
    Check(occasions: unasked) { _, worker, now in
      guard let retryAt = worker.run.hibernation.retryAt, now < retryAt else { return nil }
      return .failedLately(worker.run.hibernation.lastFailure ?? "", retryIn: retryAt - now)
    },
    Check(occasions: .automatic) { _, worker, now in
      guard let rest = worker.hibernationRest else { return .onlyUnderPressure }
      let slept = now - rest.from
      guard slept < rest.after else { return nil }
      return .tooEarly(slept, of: rest.after, raised: worker.hibernationBackOff)
    },
  ]
}
