extension JSON {
  /// The value that `bytes` hold, all of them; `nil` where they aren't JSON.
  public init?(_ bytes: [UInt8]) {
    let value = bytes.withUnsafeBufferPointer { buffer -> JSON? in
      var parser = JSONParser(bytes: buffer)
      guard let value = parser.value(depth: 0) else { return nil }
      parser.skipBlanks()
      return parser.isAtEnd ? value : nil
    }
    guard let value else { return nil }
    self = value
  }
}

/// Recursive descent over UTF-8 that may come from a damaged file: every failure is a `nil`.
private struct JSONParser {
  let bytes: UnsafeBufferPointer<UInt8>
  var place = 0

  init(bytes: UnsafeBufferPointer<UInt8>) { self.bytes = bytes }

  /// Deeper than anything we write, and far from the end of a thread's stack.
  private static let deepest = 64

  var isAtEnd: Bool { place == bytes.count }
  private var next: UInt8? { place < bytes.count ? bytes[place] : nil }

  mutating func skipBlanks() {
    while let byte = next, byte == 0x20 || (0x09...0x0D).contains(byte) { place += 1 }
  }

  private mutating func take(_ byte: UInt8) -> Bool {
    guard next == byte else { return false }
    place += 1
    return true
  }

  private mutating func take(_ word: StaticString, _ value: JSON) -> JSON? {
    for index in 0..<word.utf8CodeUnitCount {
      guard take(word.utf8Start[index]) else { return nil }
    }
    return value
  }

  mutating func value(depth: Int) -> JSON? {
    guard depth < Self.deepest else { return nil }
    skipBlanks()
    switch next {
    case UInt8(ascii: "{"): return object(depth)
    case UInt8(ascii: "["): return array(depth)
    case UInt8(ascii: "\""): return string().map(JSON.string)
    case UInt8(ascii: "t"): return take("true", .bool(true))
    case UInt8(ascii: "f"): return take("false", .bool(false))
    case UInt8(ascii: "n"): return take("null", .null)
    default: return number()
    }
  }

  private mutating func object(_ depth: Int) -> JSON? {
    place += 1
    var members: [JSON.Member] = []
    skipBlanks()
    if take(UInt8(ascii: "}")) { return .object([]) }
    while true {
      skipBlanks()
      guard next == UInt8(ascii: "\""), let name = string() else { return nil }
      skipBlanks()
      guard take(UInt8(ascii: ":")), let value = value(depth: depth + 1) else { return nil }
      members.append(JSON.Member(name, value))
      skipBlanks()
      if take(UInt8(ascii: "}")) { return .object(members) }
      guard take(UInt8(ascii: ",")) else { return nil }
    }
  }

  private mutating func array(_ depth: Int) -> JSON? {
    place += 1
    var values: [JSON] = []
    skipBlanks()
    if take(UInt8(ascii: "]")) { return .array([]) }
    while true {
      guard let value = value(depth: depth + 1) else { return nil }
      values.append(value)
      skipBlanks()
      if take(UInt8(ascii: "]")) { return .array(values) }
      guard take(UInt8(ascii: ",")) else { return nil }
    }
  }

  private mutating func number() -> JSON? {
    let start = place
    var isWhole = true
    while let byte = next {
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "+"): break
      case UInt8(ascii: "."), UInt8(ascii: "e"), UInt8(ascii: "E"): isWhole = false
      default: return number(from: start, isWhole)
      }
      place += 1
    }
    return number(from: start, isWhole)
  }

  private func number(from start: Int, _ isWhole: Bool) -> JSON? {
    guard start < place, bytes[start] != UInt8(ascii: "+") else { return nil }
    let text = String(decoding: bytes[start..<place], as: UTF8.self)
    if isWhole, let value = Int64(text) { return .int(value) }
    return Double(text).map(JSON.double)
  }

  private mutating func string() -> String? {
    place += 1
    let start = place
    while let byte = next {
      if byte == UInt8(ascii: "\"") {
        defer { place += 1 }
        return String(validating: bytes[start..<place], as: UTF8.self)
      }
      if byte == UInt8(ascii: "\\") { return escapedString(from: start) }
      place += 1
    }
    return nil
  }

  /// The slow way, for texts with escapes in them.
  private mutating func escapedString(from start: Int) -> String? {
    var text = Array(bytes[start..<place])
    while let byte = next {
      place += 1
      if byte == UInt8(ascii: "\"") { return String(validating: text, as: UTF8.self) }
      guard byte == UInt8(ascii: "\\") else {
        text.append(byte)
        continue
      }
      guard let scalar = escape() else { return nil }
      text += String(Character(scalar)).utf8
    }
    return nil
  }

  private mutating func escape() -> Unicode.Scalar? {
    guard let byte = next else { return nil }
    place += 1
    switch byte {
    case UInt8(ascii: "n"): return "\n"
    case UInt8(ascii: "r"): return "\r"
    case UInt8(ascii: "t"): return "\t"
    case UInt8(ascii: "b"): return "\u{8}"
    case UInt8(ascii: "f"): return "\u{C}"
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return Unicode.Scalar(byte)
    case UInt8(ascii: "u"): return unicodeEscape()
    default: return nil
    }
  }

  private mutating func unicodeEscape() -> Unicode.Scalar? {
    guard let first = fourDigits() else { return nil }
    guard (0xD800..<0xDC00).contains(first) else { return Unicode.Scalar(first) }
    guard take(UInt8(ascii: "\\")), take(UInt8(ascii: "u")), let second = fourDigits(),
      (0xDC00..<0xE000).contains(second)
    else { return nil }
    return Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))
  }

  private mutating func fourDigits() -> UInt32? {
    guard place + 4 <= bytes.count else { return nil }
    defer { place += 4 }
    return UInt32(String(decoding: bytes[place..<place + 4], as: UTF8.self), radix: 16)
  }
}
