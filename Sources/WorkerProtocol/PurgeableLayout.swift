/// The table at the beginning of a worker's purgeable memory. docs/worker-protocol.md, "Purgeable
/// memory", defines it. Offsets and sizes are in bytes.
///
/// ```
///   0  magic, slotCount, dataOffset, zeros
///  64  slot[0]: state, offset, length, zero
///  96  slot[1] …
///      dataOffset: contents, each in whole pages
/// ```
public enum PurgeableLayout {
  /// "DORMPRG1", little endian.
  public static let magic: UInt64 = 0x3147_5250_4D52_4F44
  public static let headerLength = 64
  public static let slotLength = 32
  public static let maxSlots = 65_536

  public static let slotCountOffset = 8
  public static let dataOffsetOffset = 12
  /// The next three offsets are counted from the beginning of a slot.
  public static let stateOffset = 0
  public static let contentOffsetOffset = 8
  public static let contentLengthOffset = 16

  public static func offset(ofSlot slot: Int) -> Int { headerLength + slot * slotLength }

  /// The length of a table with this many slots, with its header.
  public static func tableLength(slots: Int) -> Int { offset(ofSlot: slots) }
}
