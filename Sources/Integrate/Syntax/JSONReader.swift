/// Reads JSON with comments and trailing commas (JSONC), and records the range of each value.
struct JSONReader: ByteReader {
  let bytes: [UInt8]
  var position = 0

  static func read(_ bytes: [UInt8]) throws(ConfigSyntaxError) -> ConfigValue {
    var reader = JSONReader(bytes: bytes)
    if bytes.starts(with: ConfigDocument.byteOrderMark) { reader.position = 3 }
    try reader.skipSpace()
    // An empty file has no settings.
    if reader.next == nil {
      return ConfigValue(kind: .table(ConfigTable()), range: bytes.count..<bytes.count)
    }
    let value = try reader.value(depth: 0)
    try reader.skipSpace()
    if reader.next != nil { throw reader.failure("there is more after the end of the document") }
    return value
  }

  mutating func skipSpace() throws(ConfigSyntaxError) {
    while let byte = next {
      if byte.isBlank {
        position += 1
      } else if byte == UInt8(ascii: "/") {
        try skipComment()
      } else {
        return
      }
    }
  }

  private mutating func skipComment() throws(ConfigSyntaxError) {
    let start = position
    switch position + 1 < bytes.count ? bytes[position + 1] : 0 {
    case UInt8(ascii: "/"):
      while let byte = next, byte != UInt8(ascii: "\n") { position += 1 }
    case UInt8(ascii: "*"):
      position += 2
      while position + 1 < bytes.count {
        if bytes[position] == UInt8(ascii: "*"), bytes[position + 1] == UInt8(ascii: "/") {
          position += 2
          return
        }
        position += 1
      }
      throw failure("this comment has no end", at: start)
    default: throw failure("a value or a comment is expected here")
    }
  }

  mutating func value(depth: Int) throws(ConfigSyntaxError) -> ConfigValue {
    if depth >= Self.maxDepth { throw failure("more than \(Self.maxDepth) levels are nested") }
    let start = position
    let kind: ConfigValue.Kind
    switch next {
    case UInt8(ascii: "{"): kind = try .table(members(depth))
    case UInt8(ascii: "["): kind = try .list(elements(depth))
    case UInt8(ascii: "\""): kind = try .text(string())
    default: kind = try .other(word())
    }
    return ConfigValue(kind: kind, range: start..<position)
  }

  private mutating func members(_ depth: Int) throws(ConfigSyntaxError) -> ConfigTable {
    var table = ConfigTable()
    try readItems(until: UInt8(ascii: "}")) { (reader) throws(ConfigSyntaxError) in
      let start = reader.position
      guard reader.next == UInt8(ascii: "\"") else {
        throw reader.expected("a key in quotes, or `}`,")
      }
      let name = try reader.string()
      let key = start..<reader.position
      if table.index(of: name) != nil {
        throw reader.failure("the key `\(name)` is already in this object", at: start)
      }
      try reader.skipSpace()
      guard reader.consume(UInt8(ascii: ":")) else { throw reader.expected("`:`") }
      try reader.skipSpace()
      let value = try reader.value(depth: depth + 1)
      table.append(ConfigMember(name: name, key: key, lastKey: key, value: value))
    }
    return table
  }

  /// Reads a number, true, false or null. Its meaning isn't needed.
  private mutating func word() throws(ConfigSyntaxError) -> String {
    let start = position
    while let byte = next, byte.isLetterOrDigit || "+-._".utf8.contains(byte) { position += 1 }
    let text = String(decoding: bytes[start..<position], as: UTF8.self)
    if ["true", "false", "null"].contains(text) { return text }
    guard let first = text.utf8.first, first == UInt8(ascii: "-") || (0x30...0x39).contains(first),
      Double(text) != nil
    else {
      position = start
      throw expected("a value")
    }
    return text
  }

  private mutating func string() throws(ConfigSyntaxError) -> String {
    let start = position
    position += 1
    var text: [UInt8] = []
    while let byte = next {
      switch byte {
      case UInt8(ascii: "\""):
        position += 1
        return String(decoding: text, as: UTF8.self)
      case UInt8(ascii: "\\"): text += try escape()
      case 0..<0x20: throw failure("a control character in a text is written with `\\`")
      default:
        text.append(byte)
        position += 1
      }
    }
    throw failure("this text has no end", at: start)
  }

  private mutating func escape() throws(ConfigSyntaxError) -> [UInt8] {
    let start = position
    position += 1
    guard let byte = next else { throw failure("this text has no end", at: start) }
    position += 1
    if let same = escapedByte(byte) { return [same] }
    switch byte {
    case UInt8(ascii: "/"): return [byte]
    case UInt8(ascii: "u"):
      guard let first = fourDigits() else {
        throw failure("`\\u` has four hexadecimal digits", at: start)
      }
      return Array(String(Character(scalar(first))).utf8)
    default: throw failure("there is no escape of this letter", at: start)
    }
  }

  /// Returns the scalar of an escape. Hosts accept one half of a surrogate pair alone. It is U+FFFD
  /// here, and the bytes of the file stay.
  private mutating func scalar(_ first: UInt32) -> Unicode.Scalar {
    let unknown: Unicode.Scalar = "\u{FFFD}"
    guard (0xD800..<0xDC00).contains(first) else { return Unicode.Scalar(first) ?? unknown }
    let start = position
    guard consume(UInt8(ascii: "\\")), consume(UInt8(ascii: "u")), let second = fourDigits(),
      (0xDC00..<0xE000).contains(second)
    else {
      position = start
      return unknown
    }
    return Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00)) ?? unknown
  }

  private mutating func fourDigits() -> UInt32? {
    guard position + 4 <= bytes.count else { return nil }
    let digits = bytes[position..<position + 4]
    guard digits.allSatisfy(\.isHexadecimal),
      let value = UInt32(String(decoding: digits, as: UTF8.self), radix: 16)
    else { return nil }
    position += 4
    return value
  }
}

extension UInt8 {
  var isHexadecimal: Bool {
    (0x30...0x39).contains(self) || (0x41...0x46).contains(self) || (0x61...0x66).contains(self)
  }
}
