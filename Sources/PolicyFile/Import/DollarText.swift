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
