import Testing

@testable import Policy

@Suite struct `Patterns of rules` {
  static let cases: [(String, String, Bool)] = [
    ("", "", true), ("", "a", false), ("a", "a", true), ("a", "b", false), ("a", "ab", false),
    ("*", "", true), ("*", "a/b c", true), ("?", "", false), ("?", "é", true), ("a*", "a", true),
    ("*/tsserver.js*", "node /usr/lib/tsserver.js --x", true),
    ("*/tsserver.js*", "node tsserver.js", false),
    ("a*b*c", "axxbyybc", true), ("a*b*c", "axxbyyb", false), ("*ab", "aab", true),
    (#"\*"#, "*", true), (#"\*"#, "a", false), (#"a\"#, #"a\"#, true), (#"\\"#, #"\"#, true),
    ("[a]", "[a]", true), ("A", "a", false), ("**a", "ba", true),
  ]

  @Test(arguments: cases)
  func `A pattern matches a whole text`(pattern: String, text: String, matches: Bool) {
    #expect(Glob(pattern).matches(text) == matches)
    #expect(Glob(pattern).pattern == pattern)
  }

  /// Whether the text matches by the definition, without regard to time.
  private static func matches(_ pattern: [Character], _ text: [Character]) -> Bool {
    guard let first = pattern.first else { return text.isEmpty }
    let remainder = Array(pattern.dropFirst())
    if first == "*" {
      return (0...text.count).contains { matches(remainder, Array(text.dropFirst($0))) }
    }
    guard let letter = text.first, first == "?" || first == letter else { return false }
    return matches(remainder, Array(text.dropFirst()))
  }

  /// All texts of these letters up to a length.
  private static func texts(_ letters: [Character], upTo length: Int) -> [[Character]] {
    var all: [[Character]] = [[]]
    var last = all
    for _ in 0..<length {
      last = last.flatMap { text in letters.map { text + [$0] } }
      all += last
    }
    return all
  }

  @Test func `Every short pattern matches every short text as the definition says`() {
    let texts = Self.texts(["a", "b"], upTo: 5)
    for pattern in Self.texts(["a", "b", "*", "?"], upTo: 4) {
      let glob = Glob(String(pattern))
      for text in texts where glob.matches(String(text)) != Self.matches(pattern, text) {
        Issue.record("\(String(pattern)) and \(String(text))")
      }
    }
  }

  @Test func `A pattern of a text with its special characters escaped matches that text alone`() {
    let texts = Self.texts(["a", "*", "?", "\\"], upTo: 4).map { String($0) }
    for text in texts {
      let escaped = text.map { "*?\\".contains($0) ? "\\\($0)" : String($0) }.joined()
      #expect(texts.filter(Glob(escaped).matches) == [text])
    }
  }

  @Test func `A pattern with many stars takes no long time on a long text without a match`() {
    let glob = Glob(String(repeating: "*a", count: 50) + "*b")
    let took = ContinuousClock().measure {
      #expect(!glob.matches(String(repeating: "a", count: 4096)))
    }
    // Trying each star again would take years.
    #expect(took < .seconds(30))
  }
}
