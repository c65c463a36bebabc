import CLinux

/// A cyclic redundancy check of 32 bits, reflected, as most formats use it.
///
/// CRC-32C is computed by the processor's own instruction, if it has one: a thread of a trimmed
/// worker waits for the checksum of each chunk. Otherwise eight bytes are read at a time, with a
/// table of 1 KiB for each of the eight positions ("slicing-by-8").
public struct CRC32: Sendable {
  /// CRC-32C (RFC 3720, appendix B.4), as in iSCSI, ext4 and Btrfs.
  public static let castagnoli = CRC32(polynomial: 0x82F6_3B78)
  /// The checksum of IEEE 802.3, as in zlib and PNG.
  public static let ieee = CRC32(polynomial: 0xEDB8_8320)

  /// The lookup table. Its first 256 entries are for the last byte of eight, the next 256 for the
  /// byte before that, and so on.
  private let table: [UInt32]
  private let hasInstruction: Bool

  /// - Parameter usesInstruction: false for tests of the table.
  init(polynomial: UInt32, usesInstruction: Bool = true) {
    // Each step has a type: without them the type checker of Swift 6.2 takes minutes.
    var table: [UInt32] = []
    for index: UInt32 in 0..<256 {
      var sum = index
      for _ in 0..<8 {
        let isOdd: Bool = sum & 1 == 1
        sum >>= 1
        if isOdd { sum ^= polynomial }
      }
      table.append(sum)
    }
    for index in 256..<2048 {
      let sum = table[index - 256]
      table.append(sum >> 8 ^ table[Int(UInt8(truncatingIfNeeded: sum))])
    }
    self.table = table
    hasInstruction = usesInstruction && polynomial == 0x82F6_3B78 && clinux_has_crc32c() == 1
  }

  /// Returns the checksum of all bytes. Storage that is contiguous is read fastest.
  public func checksum(of bytes: some Sequence<UInt8>) -> UInt32 {
    let contiguous = bytes.withContiguousStorageIfAvailable { sum(after: .max, of: $0) }
    return ~(contiguous ?? bytes.reduce(.max) { next(after: $0, byte: $1) })
  }

  /// Computes the sum of contiguous bytes. It isn't generic: other modules' calls of a generic
  /// function take some 20 ns for each byte.
  private func sum(after start: UInt32, of bytes: UnsafeBufferPointer<UInt8>) -> UInt32 {
    if hasInstruction { return clinux_crc32c(start, bytes.baseAddress, bytes.count) }
    return table.withUnsafeBufferPointer { table in
      /// - Parameter after: the number of bytes that follow in the eight.
      func entry(_ word: UInt32, byte: UInt32, after: Int) -> UInt32 {
        table[after << 8 | Int(word >> (byte * 8) & 0xFF)]
      }
      let raw = UnsafeRawBufferPointer(bytes)
      let whole = raw.count & ~7
      var sum = start
      for offset in stride(from: 0, to: whole, by: 8) {
        let first =
          sum ^ UInt32(littleEndian: raw.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
        let second = UInt32(
          littleEndian: raw.loadUnaligned(fromByteOffset: offset + 4, as: UInt32.self))
        sum = entry(first, byte: 0, after: 7) ^ entry(first, byte: 1, after: 6)
        sum ^= entry(first, byte: 2, after: 5) ^ entry(first, byte: 3, after: 4)
        sum ^= entry(second, byte: 0, after: 3) ^ entry(second, byte: 1, after: 2)
        sum ^= entry(second, byte: 2, after: 1) ^ entry(second, byte: 3, after: 0)
      }
      return raw[whole...].reduce(sum) { $0 >> 8 ^ table[Int(UInt8(truncatingIfNeeded: $0) ^ $1)] }
    }
  }

  private func next(after sum: UInt32, byte: UInt8) -> UInt32 {
    sum >> 8 ^ table[Int(UInt8(truncatingIfNeeded: sum) ^ byte)]
  }

  /// Returns the checksum as eight hexadecimal digits.
  public func text(of bytes: some Sequence<UInt8>) -> String {
    let digits = String(checksum(of: bytes), radix: 16)
    return String(repeating: "0", count: 8 - digits.count) + digits
  }
}
