/// How short of memory the machine, or the simulated device, is.
public enum PressureLevel: Int, Codable, CodingKeyRepresentable, Hashable, Comparable, Sendable,
  CaseIterable
{
  case normal, warning, urgent, critical

  public static func < (left: PressureLevel, right: PressureLevel) -> Bool {
    left.rawValue < right.rawValue
  }
  public var name: String { String(describing: self) }
}

/// `pressure:`. A level is reached when *any* of its conditions holds.
public struct PressureRules: Codable, Hashable, Sendable {
  public var warning: PressureCondition?
  public var urgent: PressureCondition?
  public var critical: PressureCondition?
  /// A condition must hold this long before the level rises.
  public var sustainedFor: Duration
  /// None of a level's conditions must have held for this long before the level falls.
  public var clearAfter: Duration
  /// How often one worker is warned.
  public var warnOncePer: WarningScope
  /// Share of the free swap, 0–100 %, that counts as available memory at `urgent` and `critical`.
  /// nil, in journals of earlier versions: none.
  public var swap: Double?
  /// Share of the budget, 0–100 %. While at least this much memory is available, stalls alone raise
  /// the level to `warning` at most, and no worker is terminated for them.
  public var stallsCountBelow: Double
  /// A level that terminates must hold this long before a worker is terminated.
  public var terminateAfter: Duration

  /// Until the level is normal again, or again at each level (Android's trim levels).
  public enum WarningScope: String, Codable, Hashable, Sendable, CaseIterable {
    case episode, level
  }

  public init(
    warning: PressureCondition? = PressureCondition(
      availableBelow: .percent(15), someStall: Stall(percent: 10, window: .seconds(2))),
    urgent: PressureCondition? = PressureCondition(availableBelow: .percent(10)),
    critical: PressureCondition? = PressureCondition(
      availableBelow: .percent(5), fullStall: Stall(percent: 10, window: .seconds(2))),
    sustainedFor: Duration = .zero, clearAfter: Duration = .seconds(5),
    warnOncePer: WarningScope = .episode, swap: Double = 100, stallsCountBelow: Double = 20,
    terminateAfter: Duration = .seconds(1)
  ) {
    self.warning = warning
    self.urgent = urgent
    self.critical = critical
    self.sustainedFor = sustainedFor
    self.clearAfter = clearAfter
    self.warnOncePer = warnOncePer
    self.swap = swap
    self.stallsCountBelow = stallsCountBelow
    self.terminateAfter = terminateAfter
  }

  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    warning = try values.decodeIfPresent(PressureCondition.self, forKey: .warning)
    urgent = try values.decodeIfPresent(PressureCondition.self, forKey: .urgent)
    critical = try values.decodeIfPresent(PressureCondition.self, forKey: .critical)
    sustainedFor = try values.decode(Duration.self, forKey: .sustainedFor)
    clearAfter = try values.decode(Duration.self, forKey: .clearAfter)
    warnOncePer = try values.decode(WarningScope.self, forKey: .warnOncePer)
    swap = try values.decodeIfPresent(Double.self, forKey: .swap)
    // Journals of earlier versions lack these two: stalls always counted, and one reading decided.
    stallsCountBelow = try values.decodeIfPresent(Double.self, forKey: .stallsCountBelow) ?? 100
    terminateAfter = try values.decodeIfPresent(Duration.self, forKey: .terminateAfter) ?? .zero
  }

  public subscript(level: PressureLevel) -> PressureCondition? {
    switch level {
    case .normal: nil
    case .warning: warning
    case .urgent: urgent
    case .critical: critical
    }
  }
}

extension PressureRules {
  /// 0–1.
  public var swapShare: Double { (swap ?? 0) / 100 }

  /// The window for averages of stalls where one number has to serve all conditions; 2 s without any.
  public var minWindow: Duration {
    let stalls = [warning, urgent, critical].flatMap { [$0?.someStall, $0?.fullStall] }
    return stalls.compactMap { $0?.window }.min() ?? .seconds(2)
  }
}

/// What raises a level: any of the conditions that are set.
public struct PressureCondition: Codable, Hashable, Sendable {
  /// Available memory under this: a share of the whole (`15%`) or a size (`512MB`).
  public var availableBelow: Amount?
  /// PSI: some task stalled on memory for this share of the window.
  public var someStall: Stall?
  /// PSI: all non-idle tasks stalled on memory for this share of the window.
  public var fullStall: Stall?

  public init(availableBelow: Amount? = nil, someStall: Stall? = nil, fullStall: Stall? = nil) {
    self.availableBelow = availableBelow
    self.someStall = someStall
    self.fullStall = fullStall
  }

  public enum Amount: Codable, Hashable, Sendable {
    /// 0–100 % of the budget.
    case percent(Double)
    case bytes(ByteCount)

    public func bytes(of total: ByteCount) -> ByteCount {
      switch self {
      case .percent(let share): ByteCount(Int64(Double(total.bytes) * share / 100))
      case .bytes(let count): count
      }
    }
  }
}

/// A PSI threshold (Documentation/accounting/psi.rst).
public struct Stall: Codable, Hashable, Sendable {
  /// 0–100 % of the window.
  public var percent: Double
  /// 500 ms–10 s; a multiple of 2 s where the daemon lacks CAP_SYS_RESOURCE.
  public var window: Duration

  public init(percent: Double, window: Duration) {
    self.percent = percent
    self.window = window
  }
}
