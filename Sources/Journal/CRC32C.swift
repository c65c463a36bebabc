/// The Castagnoli checksum (RFC 3720, B.4), as in iSCSI, ext4 and Btrfs.
enum CRC32C {
  private static let table: [UInt32] = (0..<256).map { index in
    (0..<8).reduce(UInt32(index)) { sum, _ in
      sum & 1 == 1 ? sum >> 1 ^ 0x82F6_3B78 : sum >> 1
    }
  }

  static func checksum(of bytes: some Sequence<UInt8>) -> UInt32 {
    ~bytes.reduce(UInt32.max) { sum, byte in
      sum >> 8 ^ table[Int(UInt8(truncatingIfNeeded: sum) ^ byte)]
    }
  }

  /// Eight hex digits.
  static func text(of bytes: some Sequence<UInt8>) -> String {
    let digits = String(checksum(of: bytes), radix: 16)
    return String(repeating: "0", count: 8 - digits.count) + digits
  }
}
