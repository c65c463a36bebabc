/// Splits a `command` or `entrypoint` that is one text, as compose does.
enum ComposeTokenizer {
  /// Splits a line into words at blanks and line ends. Quotes keep them together. `\` keeps the
  /// next character, but not in single quotes. A blank within `${…}` ends no word.
  ///
  /// - Returns: nil if a quote or a `\` has no end.
  static func split(_ line: String) -> [String]? {
    var tokens: [String] = []
    var word: String?
    var quote: Character?
    var remainder = Substring(line)
    while let next = remainder.popFirst() {
      if next == "\\", quote != "'" {
        guard let escaped = remainder.popFirst() else { return nil }
        word = (word ?? "") + (["n": "\n", "t": "\t"][escaped] ?? String(escaped))
      } else if next == quote {
        quote = nil
      } else if quote == nil, next == "'" || next == "\"" {
        (quote, word) = (next, word ?? "")
      } else if quote == nil, next.isWhitespace {
        if let done = word { tokens.append(done) }
        word = nil
      } else if next == "$", remainder.hasPrefix("{"),
        let end = Expander.end(ofReference: remainder.dropFirst())
      {
        word = (word ?? "") + "$" + remainder[...end]
        remainder = remainder[end...].dropFirst()
      } else if next == "$", remainder.hasPrefix("$") {
        // `$${` is a `${` that begins no variable.
        word = (word ?? "") + "$$"
        remainder.removeFirst()
      } else {
        word = (word ?? "") + String(next)
      }
    }
    if quote != nil { return nil }
    return tokens + (word.map { [$0] } ?? [])
  }
}
