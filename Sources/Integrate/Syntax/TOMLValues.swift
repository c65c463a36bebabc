// Values of TOML: texts, numbers, arrays and inline tables.

extension TOMLReader {
  mutating func value(depth: Int) throws(ConfigSyntaxError) -> ConfigValue {
    if depth >= Self.maxDepth { throw failure("more than \(Self.maxDepth) levels are nested") }
    let start = position
    let kind: ConfigValue.Kind
    switch next {
    case UInt8(ascii: "["): kind = try .list(elements(depth))
    case UInt8(ascii: "{"): return try inlineTable(depth)
    case UInt8(ascii: "\""):
      kind = try .text(startsWith("\"\"\"") ? longString(UInt8(ascii: "\"")) : basicString())
    case UInt8(ascii: "'"):
      kind = try .text(startsWith("'''") ? longString(UInt8(ascii: "'")) : literalString())
    default: kind = try .other(word())
    }
    return ConfigValue(kind: kind, range: start..<position)
  }

  private func startsWith(_ text: String) -> Bool { bytes[position...].starts(with: text.utf8) }

  mutating func skipSpace() {
    while let byte = next, byte.isBlank || byte == UInt8(ascii: "#") {
      byte == UInt8(ascii: "#") ? skipComment() : (position += 1)
    }
  }

  /// Reads an inline table. As in TOML 1.1, it may have several lines and a last comma.
  private mutating func inlineTable(_ depth: Int) throws(ConfigSyntaxError) -> ConfigValue {
    let start = position
    var table = ConfigValue(kind: .table(ConfigTable()), range: start..<start)
    try readItems(until: UInt8(ascii: "}")) { (reader) throws(ConfigSyntaxError) in
      let path = try reader.keys()
      guard reader.consume(UInt8(ascii: "=")) else { throw reader.expected("`=`") }
      reader.skipBlanks()
      try table.add(path[...], try reader.value(depth: depth + 1), isLine: false)
    }
    table.range = start..<position
    return table
  }

  /// Reads a number, a truth value or a date. Its meaning isn't needed.
  private mutating func word() throws(ConfigSyntaxError) -> String {
    let start = position
    skipWord()
    // A date and a time may have a blank between them.
    let isDate = position - start == 10 && bytes[start + 4] == UInt8(ascii: "-")
    if isDate, next == 0x20, position + 1 < bytes.count, (0x30...0x39).contains(bytes[position + 1])
    {
      position += 1
      skipWord()
    }
    let text = String(decoding: bytes[start..<position], as: UTF8.self)
    let isName = ["true", "false", "inf", "nan", "+inf", "-inf", "+nan", "-nan"].contains(text)
    let digit = text.utf8.first { $0 != UInt8(ascii: "+") && $0 != UInt8(ascii: "-") }
    guard isName || digit.map({ (0x30...0x39).contains($0) }) == true else {
      position = start
      throw expected("a value")
    }
    return text
  }

  private mutating func skipWord() {
    while let byte = next, byte.isLetterOrDigit || "+-._:".utf8.contains(byte) { position += 1 }
  }

  // MARK: texts

  mutating func literalString() throws(ConfigSyntaxError) -> String {
    let start = position
    position += 1
    while let byte = next, byte != UInt8(ascii: "\n") {
      position += 1
      if byte == UInt8(ascii: "'") {
        return String(decoding: bytes[(start + 1)..<(position - 1)], as: UTF8.self)
      }
    }
    throw failure("this text has no end", at: start)
  }

  mutating func basicString() throws(ConfigSyntaxError) -> String {
    let start = position
    position += 1
    var text: [UInt8] = []
    while let byte = next, byte != UInt8(ascii: "\n") {
      if byte == UInt8(ascii: "\\") {
        text += try escape()
        continue
      }
      position += 1
      if byte == UInt8(ascii: "\"") { return String(decoding: text, as: UTF8.self) }
      text.append(byte)
    }
    throw failure("this text has no end", at: start)
  }

  /// Reads a text between `"""` or `'''`. The text may end with one or two quotes of its own.
  private mutating func longString(_ quote: UInt8) throws(ConfigSyntaxError) -> String {
    let start = position
    position += 3
    var text: [UInt8] = []
    if next == UInt8(ascii: "\r") { position += 1 }
    if next == UInt8(ascii: "\n") { position += 1 }
    while let byte = next {
      if byte == quote {
        let count = bytes[position...].prefix(5).prefix { $0 == quote }.count
        position += count
        if count >= 3 {
          text += repeatElement(quote, count: count - 3)
          return String(decoding: text, as: UTF8.self)
        }
        text += repeatElement(quote, count: count)
      } else if byte == UInt8(ascii: "\\"), quote == UInt8(ascii: "\"") {
        text += try skipLineEnd() ? [] : escape()
      } else {
        text.append(byte)
        position += 1
      }
    }
    throw failure("this text has no end", at: start)
  }

  /// Skips a backslash at the end of a line, and all blanks up to the next character.
  private mutating func skipLineEnd() -> Bool {
    var end = position + 1
    while end < bytes.count, bytes[end] == 0x20 || bytes[end] == 0x09 || bytes[end] == 0x0D {
      end += 1
    }
    guard end < bytes.count, bytes[end] == UInt8(ascii: "\n") else { return false }
    while end < bytes.count, bytes[end].isBlank { end += 1 }
    position = end
    return true
  }

  private mutating func escape() throws(ConfigSyntaxError) -> [UInt8] {
    let start = position
    position += 1
    guard let byte = next else { throw failure("this text has no end", at: start) }
    position += 1
    if let same = escapedByte(byte) { return [same] }
    switch byte {
    case UInt8(ascii: "e"): return [0x1B]
    case UInt8(ascii: "x"), UInt8(ascii: "u"), UInt8(ascii: "U"):
      let count = byte == UInt8(ascii: "x") ? 2 : byte == UInt8(ascii: "u") ? 4 : 8
      let digits = bytes[position...].prefix(count)
      guard digits.count == count, digits.allSatisfy(\.isHexadecimal),
        let value = UInt32(String(decoding: digits, as: UTF8.self), radix: 16),
        let scalar = Unicode.Scalar(value)
      else { throw failure("this escape is no character", at: start) }
      position += count
      return Array(String(Character(scalar)).utf8)
    default: throw failure("there is no escape of this letter", at: start)
    }
  }
}
