import Policy

// `dormouse pressure set`: a policy is tried without a shortage of memory. The level is at least what
// somebody said, for a while; what follows from it is done as ever, by the same ladder. A real shortage
// that is worse counts all the same. It rises at once, without `sustained_for`, and falls as it always
// does, `clear_after` later.

/// What somebody has set the level to, and until when.
public struct SetPressure: Codable, Hashable, Sendable {
  public var level: PressureLevel
  public var until: Instant
}

extension Engine {
  /// `nil`: the level is as measured.
  public var setPressure: SetPressure? { pressureSet.flatMap { now < $0.until ? $0 : nil } }

  mutating func recordPressureSet(_ level: PressureLevel, for time: Duration) {
    pressureSet =
      level > .normal && time > .zero ? SetPressure(level: level, until: now + time) : nil
  }
}
