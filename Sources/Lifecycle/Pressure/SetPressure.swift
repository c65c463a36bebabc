import Policy

// `dormouse pressure set` tries a policy without a shortage of memory. For a time the level is at
// least the one that the operator set, and the same ladder acts on it. A real shortage that is
// worse still counts. The level rises at once, without `sustained_for`, and falls as usual, after
// `clear_after`.

/// The level that the operator has set, and until when.
public struct SetPressure: Codable, Hashable, Sendable {
  public var level: PressureLevel
  public var until: Instant
}

extension Engine {
  /// The level that the operator has set. `nil`: the level is as measured.
  public var setPressure: SetPressure? { pressureSet.flatMap { now < $0.until ? $0 : nil } }

  /// The level to which the pressure falls, after `clear_after` at most, if no condition holds
  /// again. `nil`: it doesn't fall.
  public var fallingPressure: PressureLevel? { gauge.holding < gauge.level ? gauge.holding : nil }

  mutating func recordPressureSet(_ level: PressureLevel, for time: Duration) {
    pressureSet =
      level > .normal && time > .zero ? SetPressure(level: level, until: now + time) : nil
  }
}
