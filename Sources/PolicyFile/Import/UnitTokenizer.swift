/// Splits a line into words as systemd does (systemd.syntax(7)): blanks separate them, quotes keep
/// them together, and C's escapes work everywhere. `SplitCommand` splits as a shell does.
enum UnitTokenizer {
  /// Returns nil if a quote isn't closed, or if an escape makes a text that isn't UTF-8.
  static func split(_ text: String) -> [String]? {
    parse(text, isCommand: false).map { $0.flatMap(\.self) }
  }

  /// Returns the commands of a line, which a lone `;` separates (systemd.service(5)), without empty
  /// ones.
  static func commands(_ text: String) -> [[String]]? {
    parse(text, isCommand: true).map { $0.filter { !$0.isEmpty } }
  }

  private static func parse(_ text: String, isCommand: Bool) -> [[String]]? {
    var commands: [[String]] = [[]]
    var word: [UInt8]?
    var quote: Character?
    var remainder = Substring(text)
    func isAtWordEnd(_ remainder: Substring) -> Bool { remainder.first?.isWhitespace ?? true }
    /// Adds the word, if there is one, to the last command. Returns false if it isn't UTF-8.
    func endWord() -> Bool {
      guard let bytes = word else { return true }
      word = nil
      let text = String(validating: bytes, as: UTF8.self)
      if let text { commands[commands.count - 1].append(text) }
      return text != nil
    }
    while let next = remainder.popFirst() {
      let isBetween = isCommand && quote == nil && word == nil
      if isBetween, next == ";", isAtWordEnd(remainder) {
        commands.append([])
      } else if isBetween, next == "\\", remainder.hasPrefix(";"),
        isAtWordEnd(remainder.dropFirst())
      {
        remainder.removeFirst()
        word = [UInt8(ascii: ";")]
      } else if next == "\\", let escaped = remainder.popFirst() {
        word = (word ?? []) + replacement(for: escaped, &remainder)
      } else if next == quote {
        quote = nil
      } else if quote == nil, next == "\"" || next == "'" {
        (quote, word) = (next, word ?? [])
      } else if quote == nil, next.isWhitespace {
        guard endWord() else { return nil }
      } else {
        word = (word ?? []) + String(next).utf8
      }
    }
    return quote == nil && endWord() ? commands : nil
  }

  private static let letters: [Character: UInt8] = [
    "a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11, "s": 32, "\\": 92, "\"": 34,
    "'": 39,
  ]

  /// Returns the bytes of an escape. An escape that systemd doesn't know stays as it is, with its
  /// `\`.
  private static func replacement(for escaped: Character, _ remainder: inout Substring) -> [UInt8] {
    if let byte = letters[escaped] { return [byte] }
    switch escaped {
    case "x":
      if let byte = number(remainder.prefix(2), 2, radix: 16).flatMap(UInt8.init(exactly:)) {
        remainder = remainder.dropFirst(2)
        return [byte]
      }
    case "u", "U":
      let count = escaped == "u" ? 4 : 8
      if let scalar = number(remainder.prefix(count), count, radix: 16).flatMap(UnicodeScalar.init)
      {
        remainder = remainder.dropFirst(count)
        return Array(String(scalar).utf8)
      }
    case "0"..."7":
      let digits = String(escaped) + remainder.prefix(2)
      if let byte = number(digits[...], 3, radix: 8).flatMap(UInt8.init(exactly:)) {
        remainder = remainder.dropFirst(2)
        return [byte]
      }
    default: break
    }
    return Array("\\\(escaped)".utf8)
  }

  /// Reads a number of `count` digits. nil: there are others, or it is 0, which no argument can
  /// contain.
  private static func number(_ digits: Substring, _ count: Int, radix: Int) -> UInt32? {
    guard digits.count == count, digits.allSatisfy(\.isHexDigit),
      let number = UInt32(digits, radix: radix), number != 0
    else { return nil }
    return number
  }
}
