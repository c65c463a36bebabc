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
  public var warning: PressureCondition? = PressureCondition(
    availableBelow: .percent(15), someStall: Stall(percent: 10, window: .seconds(2)))
  public var urgent: PressureCondition? = PressureCondition(availableBelow: .percent(10))
  public var critical: PressureCondition? = PressureCondition(
    availableBelow: .percent(5), fullStall: Stall(percent: 10, window: .seconds(2)))
  /// The time that a condition must hold before the level rises.
  public var sustainedFor: Duration = .zero
  /// The time for which none of a level's conditions must have held before the level falls.
  public var clearAfter: Duration = .seconds(5)
  /// How often one worker is warned.
  public var warnOncePer: WarningScope = .episode
  /// The share of the free swap, 0–100 %, that counts as available memory at `urgent` and
  /// `critical`. `nil` (in journals of earlier versions): none.
  public var swap: Double? = 100
  /// A share of the budget, 0–100 %. While at least this much memory is available, stalls alone
  /// raise the level to `warning` at most, and no worker is terminated for them.
  public var stallsCountBelow: Double = 20
  /// The time that a level must hold before a worker is terminated for it.
  public var terminateAfter: Duration = .seconds(1)

  /// A worker is warned once until the level is normal again (`episode`), or once at each level
  /// (`level`, as Android's trim levels).
  public enum WarningScope: String, Codable, Hashable, Sendable, CaseIterable {
    case episode, level
  }

  public init() {}

  public init(from decoder: any Decoder) throws {
    let values = try decoder.container(keyedBy: CodingKeys.self)
    warning = try values.decodeIfPresent(PressureCondition.self, forKey: .warning)
    urgent = try values.decodeIfPresent(PressureCondition.self, forKey: .urgent)
    critical = try values.decodeIfPresent(PressureCondition.self, forKey: .critical)
    sustainedFor = try values.decode(Duration.self, forKey: .sustainedFor)
    clearAfter = try values.decode(Duration.self, forKey: .clearAfter)
    warnOncePer = try values.decode(WarningScope.self, forKey: .warnOncePer)
    swap = try values.decodeIfPresent(Double.self, forKey: .swap)
    // Journals of earlier versions lack these two keys: stalls always counted, and one reading
    // decided.
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

  /// The share of the free swap that counts, 0–1.
  public var swapShare: Double { (swap ?? 0) / 100 }

  /// The shortest window of all stall conditions, for averages that have to serve all of them. 2 s
  /// if there is no such condition.
  public var minWindow: Duration {
    let stalls = [warning, urgent, critical].flatMap { [$0?.someStall, $0?.fullStall] }
    return stalls.compactMap { $0?.window }.min() ?? .seconds(2)
  }
}

/// What raises a level: any of the conditions that are set.
public struct PressureCondition: Codable, Hashable, Sendable {
  /// Less memory than this is available: a share of the budget (`15%`) or a size (`512MB`).
  public var availableBelow: Amount?
  /// PSI `some`: at least one task waited for memory for this share of the window.
  public var someStall: Stall?
  /// PSI `full`: all non-idle tasks waited for memory for this share of the window.
  public var fullStall: Stall?

  public init(availableBelow: Amount? = nil, someStall: Stall? = nil, fullStall: Stall? = nil) {
    self.availableBelow = availableBelow
    self.someStall = someStall
    self.fullStall = fullStall
  }

  /// An amount of memory: a share of the budget, or a size.
  public enum Amount: Codable, Hashable, Sendable {
    /// A share of the budget, 0–100 %.
    case percent(Double)
    case bytes(ByteCount)

    /// The amount in bytes, for a budget of `total`.
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
  /// The share of the window, 0–100 %.
  public var percent: Double
  /// The window, 500 ms to 10 s. It is a multiple of 2 s if the daemon lacks CAP_SYS_RESOURCE.
  public var window: Duration

  public init(percent: Double, window: Duration) {
    self.percent = percent
    self.window = window
  }
}
