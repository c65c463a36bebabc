/// `ladder:`. The steps at each pressure level, the cheapest loss first.
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

  /// The rungs that the policy lists at a level; none at `normal`.
  public subscript(level: PressureLevel) -> [Rung] {
    switch level {
    case .normal: []
    case .warning: warning
    case .urgent: urgent
    case .critical: critical
    }
  }

  /// What is done at a level, in this order: first the rungs of lower levels that end no worker and
  /// that the level doesn't list, then its own rungs. The foreground is terminated last, wherever
  /// it is listed.
  public func steps(at level: PressureLevel) -> [Rung] {
    let listed = self[level]
    var steps: [Rung] = []
    for lower in PressureLevel.allCases where lower < level {
      steps += self[lower].filter { !$0.ends && !listed.contains($0) && !steps.contains($0) }
    }
    let last = Rung.terminate(.foreground)
    return steps + listed.filter { $0 != last } + listed.filter { $0 == last }
  }

  /// One rung. Victims of a rung are terminated one at a time, in the order of `terminate.order`.
  public enum Rung: Codable, Hashable, Sendable, CaseIterable {
    /// Hibernate suspended workers that are eligible, without waiting for `hibernate.after`.
    case hibernate
    /// Trim running workers, those first of which the most memory is expected to leave RAM.
    case trim
    /// Free the purgeable memory of workers that offer some.
    case purge
    /// Send a memory warning to every running worker that can shed, once per episode of pressure.
    case warn
    /// Terminate workers in this state, one at a time.
    case terminate(Victims)

    /// Whether the rung costs a worker its state.
    public var ends: Bool {
      if case .terminate = self { true } else { false }
    }

    public static let allCases: [Rung] =
      [.trim, .hibernate, .purge, .warn] + Victims.allCases.map { .terminate($0) }

    /// The text in a policy file: `hibernate`, `terminate suspended` and so on.
    public var text: String {
      switch self {
      case .hibernate: "hibernate"
      case .trim: "trim"
      case .purge: "purge"
      case .warn: "warn"
      case .terminate(let victims): "terminate \(victims.rawValue)"
      }
    }

    /// The states whose workers a rung terminates. `suspended` includes `hibernated`: hibernated
    /// workers free little, and their band makes them the last.
    public enum Victims: String, Codable, Hashable, Sendable, CaseIterable {
      case suspended, background, foreground
    }
  }
}
