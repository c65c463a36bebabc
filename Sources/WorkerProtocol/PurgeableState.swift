/// The state of a slot of purgeable memory: one word that the worker and the daemon change by
/// compare-and-swap.
///
/// ```
///  63        35   34      33        32     31        0
///  generation   used  purging  volatile   accesses
/// ```
public struct PurgeableState: Hashable, Sendable, RawRepresentable {
  public var rawValue: UInt64
  public init(rawValue: UInt64) { self.rawValue = rawValue }

  /// The state of a slot that was just allocated, with this many accesses to its content.
  public init(generation: UInt32, accesses: UInt32, isVolatile: Bool = true) {
    rawValue =
      UInt64(generation & Self.lastGeneration) << Self.generationShift | Self.used
      | (isVolatile ? Self.volatile : 0) | UInt64(accesses)
  }

  /// The state of a slot without content.
  public static func unused(generation: UInt32) -> PurgeableState {
    PurgeableState(rawValue: UInt64(generation & lastGeneration) << generationShift)
  }

  private static let volatile: UInt64 = 1 << 32
  private static let purging: UInt64 = 1 << 33
  private static let used: UInt64 = 1 << 34
  private static let generationShift: UInt64 = 35
  /// The largest generation, of 29 bits. The next one is 0.
  private static let lastGeneration: UInt32 = 1 << 29 - 1

  /// The number of accesses that keep the content now.
  public var accesses: UInt32 { UInt32(truncatingIfNeeded: rawValue) }
  /// True if the daemon or the owner is emptying the slot. No other code may touch the content
  /// then.
  public var isPurging: Bool { rawValue & Self.purging != 0 }
  public var isUsed: Bool { rawValue & Self.used != 0 }
  /// Changes each time that the slot is allocated or emptied.
  public var generation: UInt32 { UInt32(truncatingIfNeeded: rawValue >> Self.generationShift) }
  public var nextGeneration: UInt32 { (generation + 1) & Self.lastGeneration }

  /// True if the slot is used, volatile, not held, and not being emptied.
  public var isPurgeable: Bool {
    rawValue & (Self.used | Self.volatile | Self.purging) == Self.used | Self.volatile
      && accesses == 0
  }

  /// This state, claimed by the code that empties the slot.
  public var claimed: PurgeableState { PurgeableState(rawValue: rawValue | Self.purging) }
  /// This state, no longer claimed.
  public var spared: PurgeableState { PurgeableState(rawValue: rawValue & ~Self.purging) }
  /// The state after this one: no content, and the next generation.
  public var emptied: PurgeableState { .unused(generation: nextGeneration) }

  /// This state with one access more. The result is `nil` if the slot has no content or not the
  /// content that is meant, if the content is being emptied, or if there are too many accesses.
  public func retained(generation: UInt32) -> PurgeableState? {
    guard isUsed, !isPurging, self.generation == generation, accesses < .max else { return nil }
    return PurgeableState(rawValue: rawValue + 1)
  }

  /// This state with one access less. The result is `nil` if there is none.
  public func released(generation: UInt32) -> PurgeableState? {
    guard isUsed, self.generation == generation, accesses > 0 else { return nil }
    return PurgeableState(rawValue: rawValue - 1)
  }
}
