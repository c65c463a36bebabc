/// The words of a line as systemd splits it (systemd.syntax(7)): blanks separate, quotes keep them, and C's escapes count
/// everywhere. `CommandWords` splits as a shell does.
enum UnitWords {
  /// nil: a quote isn't closed.
  static func split(_ text: String) -> [String]? {
    var words: [String] = []
    var word: String?
    var quote: Character?
    var rest = Substring(text)
    while let next = rest.popFirst() {
      if next == "\\", let escaped = rest.popFirst() {
        word = (word ?? "") + replacement(for: escaped, &rest)
      } else if next == quote {
        quote = nil
      } else if quote == nil, next == "\"" || next == "'" {
        (quote, word) = (next, word ?? "")
      } else if quote == nil, next.isWhitespace {
        if let done = word { words.append(done) }
        word = nil
      } else {
        word = (word ?? "") + String(next)
      }
    }
    if quote != nil { return nil }
    return words + (word.map { [$0] } ?? [])
  }

  private static func replacement(for escaped: Character, _ rest: inout Substring) -> String {
    switch escaped {
    case "n": return "\n"
    case "t": return "\t"
    case "r": return "\r"
    case "s": return " "
    case "x":
      let digits = rest.prefix(2)
      guard digits.count == 2, let number = UInt8(digits, radix: 16), number != 0 else {
        return "\\x"
      }
      rest = rest.dropFirst(2)
      return String(UnicodeScalar(number))
    default: return "\(escaped)"
    }
  }
}
