import Policy

/// Whether a worker can be started without making memory short.
public enum MemoryRoom: Hashable, Sendable {
  case enough
  case notNow
  /// It is too large even if it had all of the memory.
  case never
}

extension Engine {
  /// Room for a worker with this footprint: the pressure is normal, and would still be with it.
  public func room(for footprint: ByteCount) -> MemoryRoom {
    // Before the first reading nothing is known.
    guard budget > .zero else { return pressure == .normal ? .enough : .notNow }
    let limits = PressureLevel.allCases.compactMap {
      policy.pressure[$0]?.availableBelow?.bytes(of: budget)
    }
    if footprint + (limits.min() ?? .zero) > budget { return .never }
    guard pressure == .normal else { return .notNow }
    // Where it alone would raise the first levels, the last one counts.
    let roomy = limits.filter { footprint + $0 <= budget }.max() ?? .zero
    return available >= footprint + roomy ? .enough : .notNow
  }
}
