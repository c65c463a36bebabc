import Policy
import TestSupport
import Testing

@testable import PolicyFile

@Suite(.timeLimit(.minutes(5))) struct `Hostile texts` {
  /// `&a [x,x,…]`, `&b [*a,*a,…]`, …: ten to the power of `depth` nodes when written out.
  private static func bomb(depth: Int) -> String {
    let names = (0..<depth).map { "a\($0)" }
    let lines = names.enumerated().map { index, name in
      let item = index == 0 ? "x" : "*a\(index - 1)"
      return "\(name): &\(name) [\(Array(repeating: item, count: 10).joined(separator: ", "))]"
    }
    return lines.joined(separator: "\n") + "\n"
  }

  @Test func `an alias bomb is refused before it is lit`() {
    let text = Self.bomb(depth: 12) + "? *a11\n: x\n"
    #expect(
      policy(text).rendered == """
        p.yaml: error: the aliases (`*name`) in this file may unfold into too much
        help: write the values out, or nest aliases less
        """)
    #expect(policy(Self.bomb(depth: 3) + "? *a2\n: x\n").errors.count == 4)
  }

  @Test func `many uses of one alias are no bomb`() {
    let workers = (0..<100).map { "  w\($0): { command: run, environment: *env }" }
    let text =
      "workers:\n  first: { command: run, environment: &env { A: '1' } }\n"
      + workers.joined(separator: "\n")
    #expect(configuration(text).value?.workers.last?.environment == ["A": "1"])
  }

  @Test(arguments: ["[", "{", "- ", "{a: ", "? ", "&a [", "\"", "'", "!", "| ", "%"])
  func `depth and repetition are errors`(piece: String) {
    for text in [
      String(repeating: piece, count: 5_000), "name: " + String(repeating: piece, count: 5_000),
    ] {
      let result = policy(text)
      #expect(result.value == nil && !result.errors.isEmpty)
      #expect(!result.rendered.isEmpty)
    }
  }

  @Test(arguments: [
    "\0", "name: a\0b", "name: \"a\\0b\"", "name: *nobody", "--- a\n--- b", "%YAML 9.9\n---\n",
    "\u{FEFF}", "a: b: c", "name: |\n  text\n", "!!binary \"xx\"", "\u{E000}: x", ": x", "? ",
    "*a", "- a", "~", "--- |", "name: \"\\xff\"", "name: \"\\uD800\"", "name: \r\r\n x\u{85}y: z",
  ])
  func `odd texts give a policy or an error`(text: String) {
    let result = policy(text)
    #expect((result.value == nil) == !result.errors.isEmpty)
    #expect(!result.rendered.unicodeScalars.contains("\0"))
  }

  @Test func `files over the limit are refused, just under it read`() {
    let comment = "#" + String(repeating: "x", count: 1_000) + "\n"
    #expect(policy(String(repeating: comment, count: 1_000)).value != nil)
    #expect(policy(String(repeating: comment, count: 1_100)).value == nil)
    let oneLine = policy("name: " + String(repeating: "x", count: 1_000_000))
    #expect(oneLine.errors.count == 1)
    #expect(oneLine.rendered.utf8.count < 1_000)
  }

  @Test func `a hundred diagnostics are enough`() {
    let text = (0..<5_000).map { "key\($0): x" }.joined(separator: "\n")
    #expect(policy(text).errors.count == 100)
    let same = String(repeating: "mode: shadow\n", count: 2_000)
    #expect(policy(same).value == nil)
  }

  @Test func `ios-5 with random damage is a policy or at least one error`() throws {
    guard case .success(let text) = FileContents.read("\(shippedDirectory)/ios-5.yaml") else {
      Issue.record("ios-5.yaml can't be read")
      return
    }
    let plain = Array(text.unicodeScalars)
    let letters = Array("abz019 :,[]{}#&*!|>'\"%-?\n\t\0\u{85}é\u{1F4A4}".unicodeScalars)
    var random = TestRandom(seed: 1)
    var refused = 0
    for round in 0..<400 {
      var damaged = plain
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        let at = Int.random(in: 0..<damaged.count, using: &random)
        let letter = letters[Int.random(in: 0..<letters.count, using: &random)]
        switch Int.random(in: 0..<4, using: &random) {
        case 0: damaged[at] = letter
        case 1: damaged.insert(letter, at: at)
        case 2: damaged.removeSubrange(at..<min(damaged.count, at + 20))
        default:
          let end = min(damaged.count, at + 60)
          damaged.insert(contentsOf: damaged[at..<end], at: at)
        }
      }
      let result = policy(String(String.UnicodeScalarView(damaged)))
      #expect((result.value == nil) == !result.errors.isEmpty, "round \(round)")
      for diagnostic in result.diagnostics { #expect(!diagnostic.rendered.isEmpty) }
      refused += result.value == nil ? 1 : 0
    }
    // Most of the file is comments, so not all damage shows; but the damage must be real.
    #expect((40..<400).contains(refused), "\(refused)")
  }
}
