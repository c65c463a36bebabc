/// Replaces what begins with `$` or another sign in a text of another supervisor's file.
enum DollarText {
  /// Returns the text with each sign and what belongs to it replaced.
  ///
  /// - Parameter replace: gets the text after a sign. It returns the replacement and the text that
  ///   remains.
  static func replaced(
    _ text: String, at sign: Character = "$",
    _ replace: (Substring) -> (text: String, remainder: Substring)
  ) -> String {
    var result = ""
    var remainder = Substring(text)
    while let start = remainder.firstIndex(of: sign) {
      result += remainder[..<start]
      let replacement = replace(remainder[start...].dropFirst())
      result += replacement.text
      remainder = replacement.remainder
    }
    return result + remainder
  }
}

/// A variable in a text: `$NAME`, or `${NAME}` with an operator between the name and the `}`.
struct DollarVariable {
  var name: String
  var behind: Substring
  /// The text that follows the variable.
  var remainder: Substring

  /// Reads a variable. The result is nil if none begins there.
  ///
  /// - Parameter text: the text after the `$`.
  init?(_ text: Substring) {
    let hasBraces = text.hasPrefix("{")
    let word = (hasBraces ? text.dropFirst() : text)
      .prefix { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") }
    guard let first = word.first, !first.isNumber else { return nil }
    name = String(word)
    (behind, remainder) = (text[word.endIndex..<word.endIndex], text[word.endIndex...])
    guard hasBraces else { return }
    guard let end = Expander.end(ofReference: text.dropFirst()) else { return nil }
    (behind, remainder) = (text[word.endIndex..<end], text[end...].dropFirst())
  }
}
