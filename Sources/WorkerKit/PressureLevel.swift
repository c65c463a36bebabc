/// The pressure level: how short the machine's memory is, as the daemon's policy defines it.
/// `normal` is the lowest level.
public enum PressureLevel: String, Sendable, Hashable, Comparable, CaseIterable {
  case normal, warning, urgent, critical

  public static func < (left: PressureLevel, right: PressureLevel) -> Bool {
    left.rank < right.rank
  }

  private var rank: Int {
    switch self {
    case .normal: 0
    case .warning: 1
    case .urgent: 2
    case .critical: 3
    }
  }
}
