import YAML

/// Reads JSON, and the part of JavaScript that is only data: `module.exports = { … }` with objects,
/// lists, texts, numbers, truth values and comments. Nothing is run, so anything else is an error.
struct LiteralText {
  private let scalars: [Unicode.Scalar]
  private var index = 0
  /// The index at which each line begins.
  private var lines = [0]

  /// The maximum number of nested levels, as in a YAML file.
  private static let deepest = 100

  struct Problem: Error {
    var position: Position
    var text: String
  }

  static func read(_ text: String) throws(Problem) -> YAMLNode {
    var reader = LiteralText(text)
    try reader.skipSpace()
    try reader.skipHead()
    let value = try reader.value(depth: 0)
    try reader.skipSpace()
    while reader.consume(";") { try reader.skipSpace() }
    if reader.next != nil { throw reader.notLiteral() }
    return value
  }

  private init(_ text: String) {
    scalars = Array(text.unicodeScalars)
    if scalars.first == "\u{FEFF}" { index = 1 }
    for (index, scalar) in scalars.enumerated() where scalar == "\n" { lines.append(index + 1) }
  }

  private var next: Unicode.Scalar? { index < scalars.count ? scalars[index] : nil }

  private func mark(_ index: Int) -> YAMLMark {
    var (low, high) = (0, lines.count)
    while high - low > 1 {
      let middle = (low + high) / 2
      if lines[middle] <= index { low = middle } else { high = middle }
    }
    return YAMLMark(line: low + 1, column: index - lines[low] + 1)
  }

  private func problem(_ text: String, at index: Int? = nil) -> Problem {
    Problem(position: Position(mark(index ?? self.index)), text: text)
  }

  /// Returns the error for code that would have to be run.
  private func notLiteral() -> Problem {
    guard let next else { return problem("the file ends where a value is expected") }
    let word = scalars[index...].prefix { Self.isNameCharacter($0) || $0 == "." || $0 == "(" }
      .prefix(40)
    let shown = word.isEmpty ? String(next) : String(String.UnicodeScalarView(word))
    return problem(
      "`\(shortened(shown))` isn't a literal value, and programs aren't run: only"
        + " `module.exports = { apps: [ … ] }` can be read")
  }

  private mutating func consume(_ word: String) -> Bool {
    guard scalars[index...].starts(with: word.unicodeScalars) else { return false }
    index += word.unicodeScalars.count
    return true
  }

  private mutating func skipSpace() throws(Problem) {
    while let scalar = next {
      if scalar.properties.isWhitespace || scalar == "\u{FEFF}" {
        index += 1
      } else if scalars[index...].starts(with: "//".unicodeScalars) {
        while let scalar = next, scalar != "\n" { index += 1 }
      } else if scalars[index...].starts(with: "/*".unicodeScalars) {
        let start = index
        index += 2
        while !consume("*/") {
          if next == nil { throw problem("this comment has no end", at: start) }
          index += 1
        }
      } else {
        return
      }
    }
  }

  /// Skips `'use strict';` and `module.exports =`, which JSON doesn't have.
  private mutating func skipHead() throws(Problem) {
    for word in ["'use strict'", "\"use strict\""] where consume(word) {
      try skipSpace()
      if consume(";") { try skipSpace() }
    }
    if consume("module.exports") {
      try skipSpace()
      guard consume("=") else { throw notLiteral() }
      try skipSpace()
    } else if consume("export default") {
      try skipSpace()
    }
  }

  private mutating func value(depth: Int) throws(Problem) -> YAMLNode {
    if depth >= Self.deepest { throw problem("more than \(Self.deepest) levels are nested") }
    let start = mark(index)
    switch next {
    case "{": return .mapping(.init(try members(depth), mark: start))
    case "[": return .sequence(.init(try elements(depth), mark: start))
    case "\"", "'", "`": return .scalar(.init(try string(), style: .doubleQuoted, mark: start))
    default: return .scalar(.init(try word(), mark: start))
    }
  }

  private mutating func members(_ depth: Int) throws(Problem) -> [YAMLNode.Mapping.Entry] {
    index += 1
    var entries: [YAMLNode.Mapping.Entry] = []
    while true {
      try skipSpace()
      if consume("}") { return entries }
      let start = mark(index)
      let isQuoted = next == "\"" || next == "'"
      let name = isQuoted ? try string() : key()
      guard isQuoted || !name.isEmpty else { throw notLiteral() }
      try skipSpace()
      // A method, or a variable's name alone, has no colon.
      guard consume(":") else { throw notLiteral() }
      try skipSpace()
      let value = try value(depth: depth + 1)
      entries.append((.scalar(.init(name, style: .doubleQuoted, mark: start)), value))
      try skipSpace()
      if next == "}" { continue }
      guard consume(",") else { throw notLiteral() }
    }
  }

  private mutating func elements(_ depth: Int) throws(Problem) -> [YAMLNode] {
    index += 1
    var nodes: [YAMLNode] = []
    while true {
      try skipSpace()
      if consume("]") { return nodes }
      nodes.append(try value(depth: depth + 1))
      try skipSpace()
      if next == "]" { continue }
      guard consume(",") else { throw notLiteral() }
    }
  }

  private static func isNameCharacter(_ scalar: Unicode.Scalar) -> Bool {
    scalar == "_" || scalar == "$" || scalar.properties.isAlphabetic
      || ("0"..."9").contains(scalar)
  }

  private mutating func key() -> String {
    let name = scalars[index...].prefix(while: Self.isNameCharacter)
    index += name.count
    return String(String.UnicodeScalarView(name))
  }

  /// Reads a number, `true`, `false`, `null` or `undefined`.
  private mutating func word() throws(Problem) -> String {
    let word = scalars[index...].prefix {
      Self.isNameCharacter($0) || "+-.".unicodeScalars.contains($0)
    }
    let text = String(String.UnicodeScalarView(word))
    let value: String? =
      switch text {
      case "true", "false", "null": text
      case "undefined": "null"
      default: Self.number(text)
      }
    guard let value else { throw notLiteral() }
    index += word.count
    return value
  }

  /// Returns a number as JavaScript prints it, if it is a whole one.
  private static func number(_ text: String) -> String? {
    let plain = text.replacing("_", with: "")
    guard let first = plain.utf8.first, "-+.0123456789".utf8.contains(first) else { return nil }
    if plain.lowercased().hasPrefix("0x") {
      return Int(plain.dropFirst(2), radix: 16).map { "\($0)" }
    }
    guard plain.utf8.allSatisfy({ "+-.0123456789eE".utf8.contains($0) }), let value = Double(plain),
      value.isFinite
    else { return nil }
    return Int(exactly: value).map { "\($0)" } ?? "\(value)"
  }

  private mutating func string() throws(Problem) -> String {
    let start = index
    let quote = next
    index += 1
    var text = String.UnicodeScalarView()
    while let scalar = next {
      index += 1
      if scalar == quote { return String(text) }
      if scalar == "\\" {
        text += try escape()
      } else if scalar == "\n", quote != "`" {
        throw problem("this text has no end", at: start)
      } else if scalar == "$", quote == "`", next == "{" {
        index -= 1
        throw problem("`${` in a text has to be evaluated: write the value")
      } else {
        text.append(scalar)
      }
    }
    throw problem("this text has no end", at: start)
  }

  private mutating func escape() throws(Problem) -> String.UnicodeScalarView {
    guard let letter = next else { throw problem("this text has no end") }
    index += 1
    switch letter {
    case "\n": return "".unicodeScalars
    case "x": return try scalar(ofDigits: 2)
    case "u":
      guard consume("{") else { return try scalar(ofDigits: 4) }
      let digits = scalars[index...].prefix { $0 != "}" }.count
      let result = try scalar(ofDigits: min(digits, 8))
      _ = consume("}")
      return result
    default: return String.UnicodeScalarView([Self.escapes[letter] ?? letter])
    }
  }

  private static let escapes: [Unicode.Scalar: Unicode.Scalar] = [
    "n": "\n", "t": "\t", "r": "\r", "b": "\u{8}", "f": "\u{C}", "v": "\u{B}",
  ]

  private mutating func scalar(ofDigits count: Int) throws(Problem) -> String.UnicodeScalarView {
    guard var value = digits(count) else { throw problem("here are not \(count) digits") }
    // JSON writes a scalar beyond 16 bits as two halves, a surrogate pair.
    if (0xD800..<0xDC00).contains(value), consume("\\u"), let low = digits(4),
      (0xDC00..<0xE000).contains(low)
    {
      value = 0x10000 + (value - 0xD800) << 10 + (low - 0xDC00)
    }
    return String.UnicodeScalarView([Unicode.Scalar(value) ?? "\u{FFFD}"])
  }

  private mutating func digits(_ count: Int) -> UInt32? {
    let digits = scalars[index...].prefix(count)
    guard digits.count == count, digits.allSatisfy({ $0.properties.isASCIIHexDigit }),
      let value = UInt32(String(String.UnicodeScalarView(digits)), radix: 16)
    else { return nil }
    index += count
    return value
  }
}
