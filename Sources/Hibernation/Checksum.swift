/// CRC-32C (Castagnoli, RFC 3720 appendix B.4) of an image's header and index: a few kilobytes, so
/// one table is fast enough. The page data has zstd's own checksums.
public enum Checksum {
  private static let table: [UInt32] = (0..<256).map { index in
    (0..<8).reduce(UInt32(index)) { value, _ in
      value & 1 == 1 ? value >> 1 ^ 0x82f6_3b78 : value >> 1
    }
  }

  public static func crc32c(_ bytes: some Sequence<UInt8>) -> UInt32 {
    ~bytes.reduce(~UInt32(0)) { value, byte in
      value >> 8 ^ table[Int(UInt8(truncatingIfNeeded: value) ^ byte)]
    }
  }
}
