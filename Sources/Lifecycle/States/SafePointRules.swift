import Policy

// What must be over before a worker is frozen: a frozen worker can't finish anything.

/// The check for file locks before a suspension.
struct LockWatch: Codable, Sendable, Equatable {
  var began: Instant
  var askedAt: Instant
  var answeredAt: Instant?
  var held = 0

  /// The time between two checks. A result without locks is valid for the same time.
  static let interval = Duration.seconds(1)
  /// The longest wait for a result: a check that fails mustn't keep a worker awake.
  static let timeout = Duration.seconds(5)
}

extension Engine {
  mutating func recordHold(_ index: Int, _ holds: Bool) {
    guard workers[index].state.isAlive else { return }
    workers[index].run.heldSince = holds ? workers[index].run.heldSince ?? now : nil
  }

  mutating func recordFileLocks(_ index: Int, _ held: Int) {
    guard workers[index].run.lockWatch != nil else { return }
    workers[index].run.lockWatch?.answeredAt = now
    workers[index].run.lockWatch?.held = held
  }

  /// The last obstacle to a suspension, which needs a check of file locks. Asks for the check, and
  /// repeats it every second while there are locks, up to the policy's limit.
  mutating func isAtSafePoint(_ index: Int) -> Bool {
    let limit = workers[index].policy.background.safePoint.fileLocks
    guard limit > .zero else { return true }
    guard let watch = workers[index].run.lockWatch else {
      workers[index].run.lockWatch = LockWatch(began: now, askedAt: now)
      emit(.checkSafePoint(workers[index].id))
      return false
    }
    if now >= watch.began + limit {
      workers[index].run.lastingLocks = max(workers[index].run.lastingLocks, watch.held)
      return true
    }
    guard let answeredAt = watch.answeredAt else {
      return now >= watch.askedAt + LockWatch.timeout
    }
    if now >= answeredAt + LockWatch.interval {
      workers[index].run.lockWatch?.askedAt = now
      workers[index].run.lockWatch?.answeredAt = nil
      emit(.checkSafePoint(workers[index].id))
      return false
    }
    return watch.held <= workers[index].run.lastingLocks
  }
}

extension WorkerRecord {
  /// Until when the worker's hold may keep it awake. `nil`: there is no hold.
  var heldUntil: Instant? {
    run.heldSince.map { max($0, since) + policy.background.safePoint.hold }
  }

  /// When the worker has been up for long enough to be suspended by the policy alone.
  var uptimeOver: Instant {
    let rules = policy.background.safePoint
    return run.runningSince + (run.hasWoken ? rules.afterWake : rules.afterLaunch)
  }

  func considerSafePoint(_ next: inout EarliestDeadline) {
    next.consider(heldUntil)
    next.consider(uptimeOver)
    guard let watch = run.lockWatch else { return }
    next.consider(watch.began + policy.background.safePoint.fileLocks)
    next.consider(watch.askedAt + LockWatch.timeout)
    next.consider(watch.answeredAt.map { $0 + LockWatch.interval })
  }
}
