/// The pressure level: how short the machine's memory is, as the daemon's policy defines it.
/// `normal` is the lowest level.
public enum PressureLevel: String, Sendable, Hashable, Comparable, CaseIterable {
  case normal, warning, urgent, critical

  public static func < (left: PressureLevel, right: PressureLevel) -> Bool {
    left.rank < right.rank
  }

  private var rank: Int { Self.allCases.firstIndex(of: self) ?? 0 }
}
