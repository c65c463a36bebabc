/// Base64 as in RFC 4648, section 4: with padding, and without other characters such as line
/// breaks.
public enum Base64 {
  private static let alphabet = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
  private static let padding = UInt8(ascii: "=")

  /// Encodes bytes.
  public static func encode(_ bytes: [UInt8]) -> String {
    var text: [UInt8] = []
    text.reserveCapacity((bytes.count + 2) / 3 * 4)
    for start in stride(from: 0, to: bytes.count, by: 3) {
      let group = bytes[start..<min(start + 3, bytes.count)]
      let bits = group.reduce(UInt32(0)) { $0 << 8 | UInt32($1) } << (8 * UInt32(3 - group.count))
      for index in 0..<4 {
        text.append(
          index <= group.count ? alphabet[Int(bits >> (18 - 6 * UInt32(index)) & 63)] : padding)
      }
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// Decodes base64. Returns nil if `text` isn't base64.
  public static func decode(_ text: String) -> [UInt8]? {
    let symbols = Array(text.utf8)
    guard symbols.count.isMultiple(of: 4) else { return nil }
    let padded = symbols.reversed().prefix(2).prefix { $0 == padding }.count
    var bytes: [UInt8] = []
    bytes.reserveCapacity(symbols.count / 4 * 3)
    for start in stride(from: 0, to: symbols.count, by: 4) {
      var bits: UInt32 = 0
      for index in start..<(start + 4) {
        let isPadding = index >= symbols.count - padded
        guard let value = isPadding ? 0 : value(of: symbols[index]) else { return nil }
        bits = bits << 6 | value
      }
      bytes += [UInt8(bits >> 16 & 255), UInt8(bits >> 8 & 255), UInt8(bits & 255)]
    }
    bytes.removeLast(padded)
    return bytes
  }

  private static func value(of symbol: UInt8) -> UInt32? {
    switch symbol {
    case 0x41...0x5A: UInt32(symbol) - 0x41
    case 0x61...0x7A: UInt32(symbol) - 0x61 + 26
    case 0x30...0x39: UInt32(symbol) - 0x30 + 52
    case UInt8(ascii: "+"): 62
    case UInt8(ascii: "/"): 63
    default: nil
    }
  }
}
