/// Variables in the texts of Docker's compose file, as ours.
enum ComposeVariables {
  /// - Returns: a text of our configuration.
  static func expanded(_ text: String) -> String {
    DollarText.replaced(text) { rest in
      if rest.hasPrefix("$") {
        let rest = rest.dropFirst()
        return (rest.hasPrefix("{") ? "$$" : "$", rest)
      }
      let braces = rest.hasPrefix("{")
      let name = (braces ? rest.dropFirst() : rest)
        .prefix { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") }
      guard let first = name.first, !first.isNumber else { return (braces ? "$$" : "$", rest) }
      guard braces else { return ("${\(name):-}", rest[name.endIndex...]) }
      guard let end = rest.firstIndex(of: "}") else { return ("$$", rest) }
      let behind = rest[name.endIndex..<end]
      return ("${\(name)\(fallback(behind))}", rest[end...].dropFirst())
    }
  }

  /// With `?` compose needs a value, as we do without a fallback.
  private static func fallback(_ text: Substring) -> String {
    if text.hasPrefix(":-") { return String(text) }
    if text.hasPrefix("-") { return ":\(text)" }
    return text.hasPrefix(":?") || text.hasPrefix("?") ? "" : ":-"
  }

  /// Words between blanks; a blank in the fallback of a variable ends no word.
  static func words(_ line: String) -> [String] {
    var words: [String] = []
    var word = ""
    var isInBraces = false
    for character in line {
      if character == "{", word.hasSuffix("$") { isInBraces = true }
      if character == "}" { isInBraces = false }
      if character.isWhitespace, !isInBraces {
        if !word.isEmpty { words.append(word) }
        word = ""
      } else {
        word.append(character)
      }
    }
    return word.isEmpty ? words : words + [word]
  }

  /// `1m30s`, Go's durations, in seconds; nil: it is none.
  static func seconds(_ text: String) -> Double? {
    let units: [(String, Double)] = [
      ("ms", 0.001), ("us", 0.000_001), ("h", 3600), ("m", 60), ("s", 1),
    ]
    var rest = Substring(text)
    var sum = 0.0
    guard !rest.isEmpty else { return nil }
    while !rest.isEmpty {
      let digits = rest.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
      rest = rest[digits.endIndex...]
      guard let value = Double(digits), value < 1_000_000,
        let unit = units.first(where: { rest.hasPrefix($0.0) })
      else { return nil }
      sum += value * unit.1
      rest = rest.dropFirst(unit.0.count)
    }
    return sum
  }

  /// `512M`, `1gb`, bytes without a unit; nil: it is none.
  static func size(_ text: String) -> String? {
    let digits = text.prefix { $0.isASCII && $0.isNumber }
    guard let value = Int64(digits), value > 0 else { return nil }
    switch text[digits.endIndex...].lowercased() {
    case "", "b": return "\(value)B"
    case "k", "kb": return "\(value)KB"
    case "m", "mb": return "\(value)MB"
    case "g", "gb": return "\(value)GB"
    default: return nil
    }
  }
}
