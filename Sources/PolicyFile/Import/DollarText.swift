/// A text of another supervisor's file in which `$` begins something.
enum DollarText {
  /// - Parameter replace: gets what is behind a `$`; returns what stands for the `$` and what follows it, and the rest.
  static func replaced(
    _ text: String, _ replace: (Substring) -> (text: String, rest: Substring)
  ) -> String {
    var result = ""
    var rest = Substring(text)
    while let dollar = rest.firstIndex(of: "$") {
      result += rest[..<dollar]
      let found = replace(rest[dollar...].dropFirst())
      result += found.text
      rest = found.rest
    }
    return result + rest
  }
}

/// `$NAME`, or `${NAME}` with what stands between the name and the `}`.
struct DollarVariable {
  var name: String
  var behind: Substring
  /// What follows it in the text.
  var rest: Substring

  /// - Parameter text: what is behind the `$`. The result is nil if no variable begins there.
  init?(_ text: Substring) {
    let hasBraces = text.hasPrefix("{")
    let word = (hasBraces ? text.dropFirst() : text)
      .prefix { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") }
    guard let first = word.first, !first.isNumber else { return nil }
    name = String(word)
    (behind, rest) = (text[word.endIndex..<word.endIndex], text[word.endIndex...])
    guard hasBraces else { return }
    guard let end = Expander.end(ofReference: text.dropFirst()) else { return nil }
    (behind, rest) = (text[word.endIndex..<end], text[end...].dropFirst())
  }
}
