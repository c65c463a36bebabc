import Policy

/// The pressure level, with hysteresis. It rises when a condition has held for `sustained_for`. It
/// falls, to the level that holds then, when none of its conditions has held for `clear_after`.
struct PressureGauge: Codable, Sendable, Equatable {
  private(set) var level = PressureLevel.normal
  /// The level that holds at this moment, measured or set, without hysteresis.
  private(set) var holding = PressureLevel.normal
  /// Counts how often the level has fallen back to normal.
  private(set) var episode = 0
  /// For each level, since when it, or a higher one, has held without a break.
  private(set) var heldSince = PerLevel<Instant>()
  private var goneSince: Instant?

  struct Change: Equatable {
    var from: PressureLevel
    var to: PressureLevel
  }

  /// Updates the level. Returns a change of it.
  ///
  /// - Parameter set: the level that the operator has set; it needs no time to rise.
  mutating func update(
    measured: PressureLevel, set: PressureLevel, rules: PressureRules, at now: Instant
  ) -> Change? {
    holding = max(measured, set)
    for index in PerLevel<Instant>.levels.indices {
      let level = PerLevel<Instant>.levels[index]
      heldSince[level] = measured >= level ? heldSince[level] ?? now : nil
    }
    goneSince = holding < level ? goneSince ?? now : nil
    return rise(rules, now) ?? (set > level ? self.set(set) : nil) ?? fall(rules, now)
  }

  private mutating func rise(_ rules: PressureRules, _ now: Instant) -> Change? {
    var candidate = PressureLevel.critical
    while candidate > level {
      if let since = heldSince[candidate], now >= since + rules.sustainedFor {
        return set(candidate)
      }
      candidate = candidate.below
    }
    return nil
  }

  private mutating func fall(_ rules: PressureRules, _ now: Instant) -> Change? {
    guard let goneSince, now >= goneSince + rules.clearAfter else { return nil }
    return set(holding)
  }

  private mutating func set(_ new: PressureLevel) -> Change {
    defer {
      level = new
      goneSince = nil
      if new == .normal { episode += 1 }
    }
    return Change(from: level, to: new)
  }

  /// Moves the times by the time that the machine slept, in which no reading could show whether a
  /// condition still holds.
  mutating func postpone(by time: Duration) {
    for index in PerLevel<Instant>.levels.indices {
      let level = PerLevel<Instant>.levels[index]
      heldSince[level] = heldSince[level].map { $0 + time }
    }
  }

  /// Considers the instants at which time alone may change the level, or what the ladder may do at
  /// it.
  func considerDeadlines(_ rules: PressureRules, _ next: inout EarliestDeadline) {
    var candidate = PressureLevel.critical
    while candidate > level {
      next.consider(heldSince[candidate].map { $0 + rules.sustainedFor })
      candidate = candidate.below
    }
    next.consider(goneSince.map { $0 + rules.clearAfter })
    for index in PerLevel<Instant>.levels.indices {
      guard let since = heldSince[PerLevel<Instant>.levels[index]] else { continue }
      next.consider(since + rules.terminateAfter)
      next.consider(since + rules.terminateAfter + LadderState.readingTimeout)
    }
  }
}

/// An episode of pressure, which lasts until the level is normal, and a level in it.
struct PressureEpisode: Codable, Hashable, Sendable {
  var episode: Int
  var level: PressureLevel
}

extension Engine {
  mutating func updatePressure() {
    let acting = actingLevel
    defer {
      // At another level, workers that were warned may be warned again.
      if actingLevel != acting, policy.pressure.warnOncePer != .episode {
        workers.markStale(.noted)
      }
    }
    let change = gauge.update(
      measured: holdingLevel(), set: setPressure?.level ?? .normal, rules: policy.pressure, at: now)
    guard let change else { return }
    let reason = levelReason()
    if change.to == .normal {
      ladderState.shadowFreed = .zero
      // A new episode begins: workers that were warned may be warned again.
      workers.markStale(.noted)
    }
    let clearAfter = policy.pressure.clearAfter.text
    let fell = "no condition has held for \(clearAfter); \(reason)"
    emit(
      .pressureChanged(
        from: change.from, to: change.to, why: change.to > change.from ? reason : fell))
  }
}
