/// A cyclic redundancy check of 32 bits, reflected, as most formats use it. One table of 1 KiB for each
/// polynomial is fast enough: what is checked are records, lines and indices of some kilobytes.
public struct CRC32: Sendable {
  /// CRC-32C (RFC 3720, appendix B.4), as in iSCSI, ext4 and Btrfs.
  public static let castagnoli = CRC32(polynomial: 0x82F6_3B78)
  /// The checksum of IEEE 802.3, as in zlib and PNG.
  public static let ieee = CRC32(polynomial: 0xEDB8_8320)

  private let table: [UInt32]

  private init(polynomial: UInt32) {
    table = (0..<256).map { index in
      (0..<8).reduce(UInt32(index)) { sum, _ in sum & 1 == 1 ? sum >> 1 ^ polynomial : sum >> 1 }
    }
  }

  public func checksum(of bytes: some Sequence<UInt8>) -> UInt32 {
    let contiguous = bytes.withContiguousStorageIfAvailable { sum(after: .max, of: $0) }
    return ~(contiguous ?? bytes.reduce(.max) { next(after: $0, byte: $1) })
  }

  /// Not generic: other modules' calls of a generic function take some 20 ns for each byte, and the index of an
  /// image has up to 100 KB, which a worker waits for when it is resumed.
  private func sum(after start: UInt32, of bytes: UnsafeBufferPointer<UInt8>) -> UInt32 {
    table.withUnsafeBufferPointer { table in
      bytes.reduce(start) { $0 >> 8 ^ table[Int(UInt8(truncatingIfNeeded: $0) ^ $1)] }
    }
  }

  private func next(after sum: UInt32, byte: UInt8) -> UInt32 {
    sum >> 8 ^ table[Int(UInt8(truncatingIfNeeded: sum) ^ byte)]
  }

  /// The checksum as eight hexadecimal digits.
  public func text(of bytes: some Sequence<UInt8>) -> String {
    let digits = String(checksum(of: bytes), radix: 16)
    return String(repeating: "0", count: 8 - digits.count) + digits
  }
}
