/// The state of a slot of purgeable memory, one word that both sides change by compare-and-swap.
///
/// ```
///  63        35   34      33        32     31        0
///  generation   used  purging  volatile   accesses
/// ```
public struct PurgeableState: Hashable, Sendable, RawRepresentable {
  public var rawValue: UInt64
  public init(rawValue: UInt64) { self.rawValue = rawValue }

  /// A slot that has just been given out, with this many holders of its content.
  public init(generation: UInt32, accesses: UInt32, isVolatile: Bool = true) {
    rawValue =
      UInt64(generation & Self.lastGeneration) << Self.generationShift | Self.used
      | (isVolatile ? Self.volatile : 0) | UInt64(accesses)
  }

  /// A slot without content.
  public static func unused(generation: UInt32) -> PurgeableState {
    PurgeableState(rawValue: UInt64(generation & lastGeneration) << generationShift)
  }

  private static let volatile: UInt64 = 1 << 32
  private static let purging: UInt64 = 1 << 33
  private static let used: UInt64 = 1 << 34
  private static let generationShift: UInt64 = 35
  /// 29 bits; 0 follows.
  private static let lastGeneration: UInt32 = 1 << 29 - 1

  /// How many hold the content now.
  public var accesses: UInt32 { UInt32(truncatingIfNeeded: rawValue) }
  /// May be taken when it isn't held.
  public var isVolatile: Bool { rawValue & Self.volatile != 0 }
  /// The daemon or its owner is about to empty it, and no other code may touch it.
  public var isPurging: Bool { rawValue & Self.purging != 0 }
  public var isUsed: Bool { rawValue & Self.used != 0 }
  /// Changes each time that the slot is given out or emptied.
  public var generation: UInt32 { UInt32(truncatingIfNeeded: rawValue >> Self.generationShift) }
  public var nextGeneration: UInt32 { (generation + 1) & Self.lastGeneration }

  /// Used, volatile, not held, and not being taken already.
  public var isTakeable: Bool {
    rawValue & (Self.used | Self.volatile | Self.purging) == Self.used | Self.volatile
      && accesses == 0
  }

  /// The same, being taken.
  public var taken: PurgeableState { PurgeableState(rawValue: rawValue | Self.purging) }
  /// The same, no longer being taken.
  public var spared: PurgeableState { PurgeableState(rawValue: rawValue & ~Self.purging) }
  /// What follows on it: no content, the next generation.
  public var emptied: PurgeableState { .unused(generation: nextGeneration) }

  /// The same with one more holder; `nil` where that can't be: no content, not the content that is meant, being
  /// taken, or too many holders.
  public func held(generation: UInt32) -> PurgeableState? {
    guard isUsed, !isPurging, self.generation == generation, accesses < .max else { return nil }
    return PurgeableState(rawValue: rawValue + 1)
  }

  /// The same with one holder less; `nil` where there is none.
  public func released(generation: UInt32) -> PurgeableState? {
    guard isUsed, self.generation == generation, accesses > 0 else { return nil }
    return PurgeableState(rawValue: rawValue - 1)
  }

  public func withVolatile(_ isVolatile: Bool) -> PurgeableState {
    PurgeableState(
      rawValue: isVolatile ? rawValue | Self.volatile : rawValue & ~Self.volatile)
  }
}
