/// How large a text could become if all aliases in it were written out, at the most.
///
/// A coarse bound from counts alone, before anything is parsed: it looks into quotes and comments,
/// too. With `k` anchors and `n` aliases, the worst that can be built is a chain in which each
/// anchored node holds `n / k` aliases of the one before.
enum AliasBomb {
  /// Bytes; takes a few seconds to hash, and no file that people write comes near it.
  static let limit = 50_000_000.0

  static func worstCase(of text: String) -> Double {
    var anchors = 0.0
    var aliases = 0.0
    var beforeLast: UInt8 = 0x20
    var last: UInt8 = 0x20
    for byte in text.utf8 {
      if startsToken(after: beforeLast), isNameByte(byte) {
        if last == UInt8(ascii: "&") { anchors += 1 }
        if last == UInt8(ascii: "*") { aliases += 1 }
      }
      (beforeLast, last) = (last, byte)
    }
    let size = Double(text.utf8.count)
    guard anchors > 0, aliases > 0 else { return size }
    var worst = size
    for _ in 0..<Int(min(anchors, aliases)) {
      worst *= 1 + aliases / min(anchors, aliases)
      if worst > limit { break }
    }
    return worst
  }

  /// Whether `&` or `*` may begin a token after this byte.
  private static func startsToken(after byte: UInt8) -> Bool {
    byte <= 0x20 || byte >= 0x80 || "[]{},:?-\"'".utf8.contains(byte)
  }

  /// libYAML's letters of anchors.
  private static func isNameByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"):
      true
    default: false
    }
  }
}
