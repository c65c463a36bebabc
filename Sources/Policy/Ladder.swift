/// `ladder:`. The steps at each pressure level, cheapest loss first.
public struct Ladder: Codable, Hashable, Sendable {
  public var warning: [Rung]
  public var urgent: [Rung]
  public var critical: [Rung]

  public init(
    warning: [Rung] = [.hibernate],
    urgent: [Rung] = [.hibernate, .purge, .terminate(.suspended)],
    critical: [Rung] = [
      .purge, .terminate(.suspended), .warn, .terminate(.background), .terminate(.foreground),
    ]
  ) {
    self.warning = warning
    self.urgent = urgent
    self.critical = critical
  }

  public subscript(level: PressureLevel) -> [Rung] {
    switch level {
    case .normal: []
    case .warning: warning
    case .urgent: urgent
    case .critical: critical
    }
  }

  /// One rung. Within a rung victims are terminated one at a time, in the order of `terminate.order`.
  public enum Rung: Codable, Hashable, Sendable, CaseIterable {
    /// Hibernate suspended workers that are eligible, without waiting for `hibernate.after`.
    case hibernate
    /// Take the purgeable memory of workers that offer some.
    case purge
    /// Send every running worker that can act a memory warning; once per episode of pressure.
    case warn
    /// Terminate workers in this state, one at a time.
    case terminate(Victims)

    public static let allCases: [Rung] =
      [.hibernate, .purge, .warn] + Victims.allCases.map { .terminate($0) }

    /// The text in a policy file: `hibernate`, `terminate suspended`, …
    public var text: String {
      switch self {
      case .hibernate: "hibernate"
      case .purge: "purge"
      case .warn: "warn"
      case .terminate(let victims): "terminate \(victims.rawValue)"
      }
    }

    /// `suspended` includes `hibernated`: those free little, and by their band they are last.
    public enum Victims: String, Codable, Hashable, Sendable, CaseIterable {
      case suspended, background, foreground
    }
  }
}
