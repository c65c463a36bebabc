import Testing

@testable import YAML

@Suite struct `YAML documents` {
  private static func root(_ text: String) throws -> YAMLNode {
    try #require(try YAMLDocument(parsing: text).root)
  }

  @Test func `YAML nodes have text, marks and styles`() throws {
    let text = """
      # a comment
      plain: yes
      single: 'it''s'
      double: "a\\u00e9\\n\\0"
      empty:
      list: [1:30, {a: b}]
      text: |
        one
         two
      folded: >-
        one
        two
      """
    let mapping = try #require(try Self.root(text).mapping)
    #expect(mapping.mark == YAMLMark(line: 2, column: 1))
    let scalars: [(String, String, YAMLNode.Scalar.Style, Int, Int)] = [
      ("plain", "yes", .plain, 2, 8), ("single", "it's", .singleQuoted, 3, 9),
      ("double", "a\u{E9}\n\0", .doubleQuoted, 4, 9), ("empty", "", .plain, 5, 7),
      ("text", "one\n two\n", .literal, 7, 7), ("folded", "one two", .folded, 10, 9),
    ]
    for (key, string, style, line, column) in scalars {
      let scalar = try #require(mapping[key]?.scalar, "\(key)")
      #expect(scalar.string == string)
      #expect(scalar.style == style, "\(key)")
      #expect(scalar.mark == YAMLMark(line: line, column: column), "\(key)")
      #expect(scalar.tag == nil)
    }
    let list = try #require(mapping["list"]?.sequence)
    #expect(list.count == 2 && list[0].scalar?.string == "1:30")
    #expect(list.mark == YAMLMark(line: 6, column: 7))
    #expect(list[1].mapping?["a"]?.mark == YAMLMark(line: 6, column: 18))
    #expect(mapping.compactMap(\.key.scalar?.string) == scalarsAndList)
  }

  private let scalarsAndList = ["plain", "single", "double", "empty", "list", "text", "folded"]

  @Test func `YAML nodes keep tags, with their handles resolved`() throws {
    let items = try #require(
      try Self.root("%TAG !e! tag:e.org:\n--- [!!str a, !b c, !e!d e, ! f, !<g> [], !!map {}]\n")
        .sequence)
    #expect(
      items.map(\.tag) == [
        "tag:yaml.org,2002:str", "!b", "tag:e.org:d", "!", "g", "tag:yaml.org,2002:map",
      ])
  }

  @Test func `A YAML alias has its anchor's value and mark`() throws {
    let mapping = try #require(
      try Self.root("a: &x [1, 2]\nb: *x\n? &y k\n: &x 3\n*y : *x\n").mapping)
    #expect(mapping["b"]?.sequence?.count == 2)
    #expect(mapping["b"]?.mark == YAMLMark(line: 1, column: 4))
    // An anchor's name can be used again, and a key can be an alias.
    #expect(mapping.last?.key.scalar?.string == "k")
    #expect(mapping.last?.value.scalar?.string == "3")
  }

  @Test(arguments: ["a: *b", "&a [*a]", "&a { b: *a }", "[*a, &a 1]"])
  func `A YAML alias of an anchor that isn't complete before it is refused`(text: String) {
    let error = #expect(throws: YAMLError.self) { try YAMLDocument(parsing: text) }
    guard case .syntax(let syntax) = error else {
      Issue.record("\(String(describing: error))")
      return
    }
    #expect(syntax.problem == "found undefined alias")
    let column = text.firstIndex(of: "*").map { text.distance(from: text.startIndex, to: $0) + 1 }
    #expect(syntax.mark == YAMLMark(line: 1, column: column ?? 0))
  }

  @Test func `A YAML document lists every repetition of a key with both positions`() throws {
    let text =
      "a: 1\nb: { c: 1, 'c': 2, \"c\": 3 }\n? &k d\n: 1\n*k : 2\na: { a: 3 }\n[a]: 1\n[a]: 2\n"
    let document = try YAMLDocument(parsing: text)
    #expect(
      document.duplicates == [
        .init(key: "c", first: .init(line: 2, column: 6), mark: .init(line: 2, column: 12)),
        .init(key: "c", first: .init(line: 2, column: 6), mark: .init(line: 2, column: 20)),
        .init(key: "d", first: .init(line: 3, column: 3), mark: .init(line: 5, column: 1)),
        .init(key: "a", first: .init(line: 1, column: 1), mark: .init(line: 6, column: 1)),
      ])
    #expect(document.root?.mapping?["a"]?.mapping?["a"]?.scalar?.string == "3")
    let many = try YAMLDocument(parsing: String(repeating: "a: 1\n", count: 1_000))
    #expect(many.duplicates.count == 100)
  }

  @Test(arguments: ["", "\n\n", "# nothing\n", "\u{FEFF}", "\r\n# nothing\r\n"])
  func `A YAML text without content has no root`(text: String) throws {
    #expect(try YAMLDocument(parsing: text).root == nil)
  }

  @Test func `A YAML document that only begins has an empty root`() throws {
    #expect(try Self.root("---\n").scalar?.string == "")
    #expect(try Self.root("--- # nothing\n...\n").scalar?.string == "")
  }

  @Test func `A YAML text may begin with a byte order mark, which takes no column`() throws {
    let mapping = try #require(try Self.root("\u{FEFF}a: 1\nb: 2\n").mapping)
    #expect(mapping.count == 2)
    #expect(mapping["a"]?.mark == YAMLMark(line: 1, column: 4))
  }

  @Test(arguments: ["\n", "\r\n", "\r", "\u{85}", "\u{2028}"])
  func `YAML lines may end in every way that YAML allows`(end: String) throws {
    let mapping = try #require(
      try Self.root(["a: 1", "b:", "  - é", "  - \"x"].joined(separator: end) + "\"" + end)
        .mapping)
    #expect(mapping["b"]?.sequence?.compactMap(\.scalar?.string) == ["é", "x"])
    #expect(mapping["b"]?.sequence?.last?.mark == YAMLMark(line: 4, column: 5))
  }

  @Test func `A text with two YAML documents is refused`() {
    #expect(
      throws: YAMLError.syntax(
        .init(
          problem: "but found another document", mark: .init(line: 2, column: 1),
          context: .init(
            text: "expected a single document in the stream", mark: .init(line: 1, column: 1))))
    ) { try YAMLDocument(parsing: "--- a\n--- b\n") }
  }

  @Test func `A YAML error names the byte of a character that isn't allowed`() {
    for (text, offset) in [("\0", 0), ("é: a\0b", 5), ("a: 1\n\u{7}", 5)] {
      let error = #expect(throws: YAMLError.self) { try YAMLDocument(parsing: text) }
      #expect(
        error
          == .character(problem: "control characters are not allowed", byteOffset: offset))
    }
  }

  @Test func `A YAML syntax error names its position, and where its context begins`() {
    #expect(
      throws: YAMLError.syntax(
        .init(
          problem: "did not find expected ',' or '}'", mark: .init(line: 3, column: 1),
          context: .init(text: "while parsing a flow mapping", mark: .init(line: 2, column: 4))))
    ) { try YAMLDocument(parsing: "a: 1\nb: { c: d\n") }
    #expect(
      throws: YAMLError.syntax(
        .init(
          problem: "found character that cannot start any token",
          mark: .init(line: 2, column: 1),
          context: .init(
            text: "while scanning for the next token", mark: .init(line: 2, column: 1))))
    ) { try YAMLDocument(parsing: "a:\n\tb: 1\n") }
  }
}
