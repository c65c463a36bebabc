/// Splits a text into words as systemd or Python's shlex does: blanks separate, quotes keep them.
enum QuotedWords {
  struct Word: Hashable {
    var text: String
    /// All of it was in single quotes, or parts of it were: no variable is replaced in those.
    var isQuoted = false
  }

  enum Style {
    /// systemd.syntax(7): quotes only around whole words or after `=`, C's escapes everywhere.
    case unit
    /// shlex in POSIX mode: `\` keeps the next character, and in double quotes only `\"` and `\\` are escapes.
    case shell
  }

  /// nil: a quote isn't closed.
  static func split(_ text: String, _ style: Style) -> [Word]? {
    var words: [Word] = []
    var word: Word?
    var quote: Character?
    var rest = Substring(text)
    while let next = rest.popFirst() {
      if next == "\\", !(quote == "'" && style == .shell), let escaped = rest.first {
        rest.removeFirst()
        word = word ?? Word(text: "")
        word?.text += replacement(for: escaped, in: quote, style, &rest)
      } else if let open = quote {
        if next == open { quote = nil } else { word?.text.append(next) }
      } else if next == "\"" || next == "'" {
        quote = next
        word = word ?? Word(text: "")
        word?.isQuoted = true
      } else if next.isWhitespace {
        if let done = word { words.append(done) }
        word = nil
      } else {
        word = word ?? Word(text: "")
        word?.text.append(next)
      }
    }
    if quote != nil { return nil }
    if let done = word { words.append(done) }
    return words
  }

  private static func replacement(
    for escaped: Character, in quote: Character?, _ style: Style, _ rest: inout Substring
  ) -> String {
    if style == .shell {
      return quote == nil || escaped == "\"" || escaped == "\\" ? "\(escaped)" : "\\\(escaped)"
    }
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

  /// As one word of a shell's line.
  static func shellQuoted(_ text: String) -> String {
    let isPlain = text.unicodeScalars.allSatisfy { scalar in
      switch scalar {
      case "a"..."z", "A"..."Z", "0"..."9": true
      default: "_./:=,@%+-".unicodeScalars.contains(scalar)
      }
    }
    if isPlain, !text.isEmpty { return text }
    return "'" + text.replacing("'", with: "'\\''") + "'"
  }
}
