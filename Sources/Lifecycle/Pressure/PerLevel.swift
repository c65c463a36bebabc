import Policy

/// A value, or none, for each pressure level above normal. It is a dictionary with three keys that
/// hashes nothing.
struct PerLevel<Value> {
  private var warning: Value?
  private var urgent: Value?
  private var critical: Value?

  /// The levels above normal.
  static var levels: InlineArray<3, PressureLevel> { [.warning, .urgent, .critical] }

  init() {}

  subscript(level: PressureLevel) -> Value? {
    get {
      switch level {
      case .normal: nil
      case .warning: warning
      case .urgent: urgent
      case .critical: critical
      }
    }
    set {
      switch level {
      case .normal: break
      case .warning: warning = newValue
      case .urgent: urgent = newValue
      case .critical: critical = newValue
      }
    }
  }
}

extension PressureLevel {
  /// The next lower level; for `normal` itself.
  var below: PressureLevel { PressureLevel(rawValue: rawValue - 1) ?? .normal }
}

extension PerLevel: Sendable where Value: Sendable {}
extension PerLevel: Equatable where Value: Equatable {}
extension PerLevel: Codable where Value: Codable {}
