extension JSON {
  /// Parses all of `bytes`. Returns nil if they aren't JSON (RFC 8259), or if programs would
  /// interpret them differently: a name twice in one object, half a surrogate pair, or a number
  /// that no `Double` can hold. At most 64 levels are nested.
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

/// A recursive-descent parser of UTF-8 that may come from a damaged file. Each failure is a nil.
private struct JSONParser {
  let bytes: UnsafeBufferPointer<UInt8>
  var index = 0

  /// The maximum number of nested levels: more than Dormouse writes, and far fewer than a thread's
  /// stack allows.
  private static let deepest = 64

  var isAtEnd: Bool { index == bytes.count }
  private var next: UInt8? { index < bytes.count ? bytes[index] : nil }

  mutating func skipBlanks() {
    while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 {
      index += 1
    }
  }

  private mutating func consume(_ byte: UInt8) -> Bool {
    guard next == byte else { return false }
    index += 1
    return true
  }

  private mutating func consume(_ word: StaticString, _ value: JSON) -> JSON? {
    for index in 0..<word.utf8CodeUnitCount {
      guard consume(word.utf8Start[index]) else { return nil }
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
    case UInt8(ascii: "t"): return consume("true", .bool(true))
    case UInt8(ascii: "f"): return consume("false", .bool(false))
    case UInt8(ascii: "n"): return consume("null", .null)
    default: return number()
    }
  }

  private mutating func object(_ depth: Int) -> JSON? {
    index += 1
    var members: [JSON.Member] = []
    var names = MemberNames()
    skipBlanks()
    if consume(UInt8(ascii: "}")) { return .object([]) }
    while true {
      skipBlanks()
      guard next == UInt8(ascii: "\""), let name = string(), names.insert(name, after: members)
      else { return nil }
      skipBlanks()
      guard consume(UInt8(ascii: ":")), let value = value(depth: depth + 1) else { return nil }
      members.append(JSON.Member(name, value))
      skipBlanks()
      if consume(UInt8(ascii: "}")) { return .object(members) }
      guard consume(UInt8(ascii: ",")) else { return nil }
    }
  }

  private mutating func array(_ depth: Int) -> JSON? {
    index += 1
    var values: [JSON] = []
    skipBlanks()
    if consume(UInt8(ascii: "]")) { return .array([]) }
    while true {
      guard let value = value(depth: depth + 1) else { return nil }
      values.append(value)
      skipBlanks()
      if consume(UInt8(ascii: "]")) { return .array(values) }
      guard consume(UInt8(ascii: ",")) else { return nil }
    }
  }
}

/// The names of one object's members. If they are sorted, as Dormouse writes them, each costs one
/// comparison. Otherwise a set is kept, because an object may have 100,000 members.
private struct MemberNames {
  private var names: Set<String>?

  /// Adds a name. Returns false if the name exists already.
  mutating func insert(_ name: String, after members: [JSON.Member]) -> Bool {
    if names == nil {
      guard let last = members.last, name <= last.name else { return true }
      names = Set(members.map(\.name))
    }
    return names?.insert(name).inserted == true
  }
}

// MARK: - Numbers

extension JSONParser {
  private mutating func number() -> JSON? {
    let start = index
    var isWhole = true
    let isNegative = consume(UInt8(ascii: "-"))
    // After a leading zero there may be no more digits.
    guard consume(UInt8(ascii: "0")) || consumeDigits() else { return nil }
    if consume(UInt8(ascii: ".")) {
      isWhole = false
      guard consumeDigits() else { return nil }
    }
    if consume(UInt8(ascii: "e")) || consume(UInt8(ascii: "E")) {
      isWhole = false
      if !consume(UInt8(ascii: "+")) { _ = consume(UInt8(ascii: "-")) }
      guard consumeDigits() else { return nil }
    }
    let text = String(decoding: bytes[start..<index], as: UTF8.self)
    if isWhole, let value = Int64(text) {
      return isNegative && value == 0 ? .double(-0.0) : .int(value)
    }
    if isWhole, let value = UInt64(text) { return .unsigned(value) }
    guard let value = Double(text), value.isFinite else { return nil }
    return .double(value)
  }

  /// Skips digits. Returns false if there are none.
  private mutating func consumeDigits() -> Bool {
    let start = index
    while let byte = next, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { index += 1 }
    return index > start
  }

  // MARK: - Texts

  private mutating func string() -> String? {
    index += 1
    let start = index
    while let byte = next {
      if byte == UInt8(ascii: "\"") {
        defer { index += 1 }
        return String(validating: bytes[start..<index], as: UTF8.self)
      }
      if byte == UInt8(ascii: "\\") { return escapedString(from: start) }
      guard byte >= 0x20 else { return nil }
      index += 1
    }
    return nil
  }

  /// Reads a string that has escapes. It is slower than the path for strings without any.
  private mutating func escapedString(from start: Int) -> String? {
    var text = Array(bytes[start..<index])
    while let byte = next {
      index += 1
      if byte == UInt8(ascii: "\"") { return String(validating: text, as: UTF8.self) }
      guard byte == UInt8(ascii: "\\") else {
        guard byte >= 0x20 else { return nil }
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
    index += 1
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
    // The second half of a surrogate pair, alone, is no scalar.
    guard (0xD800..<0xDC00).contains(first) else { return Unicode.Scalar(first) }
    guard consume(UInt8(ascii: "\\")), consume(UInt8(ascii: "u")), let second = fourDigits(),
      (0xDC00..<0xE000).contains(second)
    else { return nil }
    return Unicode.Scalar(0x10000 + (first - 0xD800) << 10 + (second - 0xDC00))
  }

  private mutating func fourDigits() -> UInt32? {
    guard index + 4 <= bytes.count else { return nil }
    var value: UInt32 = 0
    for byte in bytes[index..<index + 4] {
      switch byte {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): value = value << 4 | UInt32(byte - 0x30)
      case UInt8(ascii: "a")...UInt8(ascii: "f"): value = value << 4 | UInt32(byte - 0x61 + 10)
      case UInt8(ascii: "A")...UInt8(ascii: "F"): value = value << 4 | UInt32(byte - 0x41 + 10)
      default: return nil
      }
    }
    index += 4
    return value
  }
}
