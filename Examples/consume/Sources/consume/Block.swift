/// 1 MB of memory that was written to and can't be compressed.
final class Block: Sendable {
  static let bytes = 1 << 20

  /// The numbers are written only in `init`, before the object is shared.
  private nonisolated(unsafe) let numbers: UnsafeMutableBufferPointer<UInt64>

  init(seed: UInt64) {
    numbers = .allocate(capacity: Self.bytes / MemoryLayout<UInt64>.size)
    // SplitMix64 (Steele, Lea, Flood 2014).
    var state = seed
    for index in numbers.indices {
      state &+= 0x9E37_79B9_7F4A_7C15
      var word = state
      word = (word ^ (word >> 30)) &* 0xBF58_476D_1CE4_E5B9
      word = (word ^ (word >> 27)) &* 0x94D0_49BB_1331_11EB
      numbers[index] = word ^ (word >> 31)
    }
  }

  deinit { numbers.deallocate() }
}
