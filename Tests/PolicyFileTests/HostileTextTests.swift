import Policy
import TestSupport
import Testing
import YAML

@testable import PolicyFile

@Suite(.timeLimit(.minutes(5))) struct `Hostile texts` {
  /// Returns `&a [x,x,…]`, `&b [*a,*a,…]`, …: with its aliases written out it has ten to the power
  /// of `depth` nodes.
  private static func bomb(depth: Int) -> String {
    let names = (0..<depth).map { "a\($0)" }
    let lines = names.enumerated().map { index, name in
      let item = index == 0 ? "x" : "*a\(index - 1)"
      return "\(name): &\(name) [\(Array(repeating: item, count: 10).joined(separator: ", "))]"
    }
    return lines.joined(separator: "\n") + "\n"
  }

  @Test func `Aliases that may unfold into too much are refused before they are unfolded`() {
    let text = Self.bomb(depth: 12) + "? *a11\n: x\n"
    #expect(
      policy(text).rendered == """
        p.yaml: error: the aliases (`*name`) in this file may unfold into too much
        help: write the values out, or nest aliases less
        """)
    #expect(policy(Self.bomb(depth: 3) + "? *a2\n: x\n").errors.count == 4)
  }

  @Test func `Many uses of one small alias are accepted`() {
    let workers = (0..<100).map { "  w\($0): { command: run, environment: *env }" }
    let text =
      "workers:\n  first: { command: run, environment: &env { A: '1' } }\n"
      + workers.joined(separator: "\n")
    #expect(configuration(text).value?.workers.last?.environment == ["A": "1"])
  }

  @Test func `Too much nesting is refused at the position where it becomes too deep`() {
    let text = "name: x\nmemory: " + String(repeating: "[", count: 200_000)
    let result = policy(text)
    #expect(
      result.errors.map(\.message) == ["mappings and lists are nested more than 100 levels deep"])
    #expect(result.errors.first?.position == Position(line: 2, column: 108))
  }

  @Test func `More than 100 tag directives are refused before they are parsed`() {
    let text = (0..<60_000).map { "%TAG !a\($0)! b\n" }.joined()
    #expect(
      policy(text).rendered == """
        p.yaml: error: more than 100 lines begin with `%TAG`
        help: leave these lines out: tags aren't used here
        """)
  }

  @Test func `A byte order mark is skipped, and columns don't count it`() {
    #expect(policy("\u{FEFF}name: x\nmode: shadow\n").value?.name == "x")
    #expect(
      policy("\u{FEFF}mode: shado\nname: x\n").rendered == """
        p.yaml:1:7: error: `mode` must be `enforce` or `shadow`, not `shado`
        mode: shado
              ^
        help: did you mean `shadow`?
        """)
  }

  @Test(arguments: ["\n", "\r\n", "\u{2028}"])
  func `An error about a character that YAML forbids points at the character`(end: String) {
    let error = policy("# é\u{1F4A4}\(end)name: é\u{7}\(end)").errors.first
    #expect(error?.message == "syntax: control characters are not allowed")
    #expect(error?.position == Position(line: 2, column: 8))
  }

  @Test(arguments: ["[", "{", "- ", "{a: ", "? ", "&a [", "\"", "'", "!", "| ", "%"])
  func `Deep nesting and long repetition are errors`(piece: String) {
    for text in [
      String(repeating: piece, count: 5_000), "name: " + String(repeating: piece, count: 5_000),
    ] {
      let result = policy(text)
      #expect(result.value == nil && !result.errors.isEmpty)
      #expect(!result.rendered.isEmpty)
    }
  }

  @Test(arguments: [
    "\0", "name: a\0b", "name: \"a\\0b\"", "name: *nothing", "--- a\n--- b", "%YAML 9.9\n---\n",
    "\u{FEFF}", "a: b: c", "name: |\n  text\n", "!!binary \"xx\"", "\u{E000}: x", ": x", "? ",
    "*a", "- a", "~", "--- |", "name: \"\\xff\"", "name: \"\\uD800\"", "name: \r\r\n x\u{85}y: z",
  ])
  func `An odd text gives a policy or an error, and never both`(text: String) {
    let result = policy(text)
    #expect((result.value == nil) == !result.errors.isEmpty)
    #expect(!result.rendered.unicodeScalars.contains("\0"))
  }

  @Test func `A policy file over 1 MiB is refused, and one just under that is read`() {
    let comment = "#" + String(repeating: "x", count: 1_000) + "\n"
    #expect(policy(String(repeating: comment, count: 1_000)).value != nil)
    #expect(policy(String(repeating: comment, count: 1_100)).value == nil)
    let oneLine = policy("name: " + String(repeating: "x", count: 1_000_000))
    #expect(oneLine.errors.count == 1)
    #expect(oneLine.rendered.utf8.count < 1_000)
  }

  @Test func `At most 100 diagnostics are reported`() {
    let text = (0..<5_000).map { "key\($0): x" }.joined(separator: "\n")
    #expect(policy(text).errors.count == 100)
    let same = String(repeating: "mode: shadow\n", count: 2_000)
    #expect(policy(same).value == nil)
  }

  @Test(arguments: shipped)
  func `Damaged shipped policies don't crash a reader and don't make it hang`(name: String) throws {
    let plain = try FileContents.read("\(shippedDirectory)/\(name).yaml").get().unicodeScalars
    let workers = "processes: &all\n  web: &web { command: run, vars: { A: b } }\nservices: *all\n"
    var random = TestRandom(runSeed: TestRandom.runSeed, for: name)
    var refused = 0
    for round in 0..<100 {
      let comment: Comment = "round \(round)"
      let asPolicy = policy(Self.damaged(Array(plain), by: &random))
      #expect((asPolicy.value == nil) == !asPolicy.errors.isEmpty, comment)
      for diagnostic in asPolicy.diagnostics { #expect(!diagnostic.rendered.isEmpty) }
      refused += asPolicy.value == nil ? 1 : 0
      let text = Self.damaged(Array(workers.unicodeScalars + plain), by: &random)
      let asConfiguration = configuration(text)
      #expect((asConfiguration.value == nil) == !asConfiguration.errors.isEmpty, comment)
      for result in [
        ComposeImport.convert(text: text, file: "c.yaml"),
        ProcessComposeImport.convert(text: text, file: "p.yaml"),
      ] {
        #expect((result.value == nil) == !result.errors.isEmpty, comment)
        // The result of an import is valid YAML.
        if let imported = result.value {
          #expect(throws: Never.self, comment) { try YAMLDocument(parsing: imported.text) }
        }
      }
    }
    // Most of the file is comments, so not every damage causes an error. The damage must still be
    // real.
    #expect((1..<100).contains(refused), "\(refused)")
  }

  private static let letters = Array(
    "abz019 :,[]{}#&*!|>'\"%-?\n\t\0\u{85}é\u{1F4A4}\r\u{FEFF}<\\@`~".unicodeScalars)

  /// Returns the text with one to four changes: characters inserted or replaced, pieces removed or
  /// repeated.
  private static func damaged(
    _ plain: [Unicode.Scalar], by random: inout some RandomNumberGenerator
  ) -> String {
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
    return String(String.UnicodeScalarView(damaged))
  }
}
