/// RFC 4648, with padding.
enum Base64 {
  private static let digits = Array(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  static func encode(_ bytes: [UInt8]) -> String {
    let length = (bytes.count + 2) / 3 * 4
    return String(unsafeUninitializedCapacity: length) { text in
      var place = 0
      for start in stride(from: 0, to: bytes.count, by: 3) {
        let count = min(3, bytes.count - start)
        var group: UInt32 = 0
        for index in 0..<3 {
          group = group << 8 | (index < count ? UInt32(bytes[start + index]) : 0)
        }
        for index in 0..<4 {
          let digit = Int(group >> UInt32(18 - 6 * index) & 63)
          text[place] = index <= count ? digits[digit] : UInt8(ascii: "=")
          place += 1
        }
      }
      return length
    }
  }
}
