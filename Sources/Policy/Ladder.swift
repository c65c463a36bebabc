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

  /// What is done at a level, in this order: the rungs of lower levels that end no worker and that the
  /// level doesn't list, then its own. The foreground is terminated last, wherever it is listed.
  public func steps(at level: PressureLevel) -> [Rung] {
    let own = self[level]
    var steps: [Rung] = []
    for lower in PressureLevel.allCases where lower < level {
      steps += self[lower].filter { !$0.ends && !own.contains($0) && !steps.contains($0) }
    }
    let last = Rung.terminate(.foreground)
    return steps + own.filter { $0 != last } + own.filter { $0 == last }
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

    /// It costs a worker its state.
    public var ends: Bool {
      if case .terminate = self { true } else { false }
    }

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
