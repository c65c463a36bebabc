import Policy

/// Whether a worker can be started without making memory short.
public enum MemoryRoom: Hashable, Sendable {
  /// The worker can be started now.
  case enough
  /// The worker has to wait until more memory is available.
  case notNow
  /// The worker is too large even if it had all of the memory.
  case never
}

extension Engine {
  /// Whether there is room for a worker with this footprint: the pressure is normal, and would
  /// still be normal with the worker.
  public func room(for footprint: ByteCount) -> MemoryRoom {
    // Before the first reading the available memory isn't known.
    guard budget > .zero else { return pressure == .normal ? .enough : .notNow }
    let limits = PressureLevel.allCases.compactMap {
      policy.pressure[$0]?.availableBelow?.bytes(of: budget)
    }
    if footprint + (limits.min() ?? .zero) > budget { return .never }
    guard pressure == .normal else { return .notNow }
    // If the worker alone would raise the first levels, the last one counts.
    let roomy = limits.filter { footprint + $0 <= budget }.max() ?? .zero
    return available >= footprint + roomy ? .enough : .notNow
  }
}
