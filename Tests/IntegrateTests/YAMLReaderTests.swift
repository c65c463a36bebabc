import Testing

@testable import Integrate

@Suite("YAML with the range of each value") struct YAMLReaderTests {
  @Test func `Each value's range is that of the bytes it is written with`() throws {
    let text = "\u{FEFF}# é\na: ['é', \"😀\", x y]\r\nb:\n  - |\n    t\n  - z # c\n\"k\": {l: 1}\n"
    let document = try ConfigDocument(Array(text.utf8), .yaml)
    func source(_ value: ConfigValue?) throws -> String {
      String(decoding: document.bytes[try #require(value).range], as: UTF8.self)
    }
    let list = try #require(document.root["a"]?.list)
    #expect(try list.map { try source($0) } == ["'é'", "\"😀\"", "x y"])
    #expect(list.map(\.text) == ["é", "😀", "x y"])
    #expect(try source(document.root["a"]) == "['é', \"😀\", x y]")
    #expect(try source(document.root["b"]?.list?.last) == "z")
    #expect(try source(document.root["k"]) == "{l: 1}")
    let key = try #require(document.root.member("k")).key
    #expect(String(decoding: document.bytes[key], as: UTF8.self) == "\"k\"")
  }

  @Test func `Numbers, truth values, null, aliases and tagged texts are no texts`() throws {
    let text = "[1, -2.5e3, 0x1F, true, Null, ~, *a, !!str x, &b y, .inf, -y, --, 1.2.3, yes, '1']"
    let document = try ConfigDocument(Array("p: &a q\nl: \(text)\n".utf8), .yaml)
    #expect(
      document.root["l"]?.list?.compactMap(\.text) == ["-y", "--", "1.2.3", "yes", "1"])
  }

  @Test func `An error names its line and column`() {
    expectError("x: 1\na: b: c\n", .yaml, line: 2, column: 5, reason: "not allowed in this context")
    expectError("a: 1\n---\nb: 2\n", .yaml, line: 2, column: 1, reason: "second document")
    expectError("é: 1\né: 2\n", .yaml, line: 2, column: 1, reason: "already in this mapping")
    let nested = String(repeating: "[", count: 300)
    expectError(nested, .yaml, line: 1, column: 201, reason: "levels are nested")
  }

  @Test func `A text that would be another one between brackets isn't moved there`() throws {
    for command in ["a,b", "a[0]", "|\n      npx", "\"a\n      b\""] {
      let text = "m:\n  s:\n    command: \(command)\n    args: [x]\n"
      let document = try ConfigDocument(Array(text.utf8), .yaml)
      let location = try #require(MCPServers.find(at: ["m"], in: document.root).first)
      #expect(throws: Refusal.needsQuotes("`command`")) {
        try WrapEdits(document: document, wrapPrefix: WrapPrefix(program: "/d")).edits(location)
      }
    }
  }

  @Test("Undoing keeps comments that were written since between the inserted arguments")
  func commentsBetween() throws {
    let text = """
      m:
        s:
          command: "/usr/bin/dormouse"
          args:
          - "wrap" # first
          # second
          - "--"
          - npx
          - -y

      """
    let document = try ConfigDocument(Array(text.utf8), .yaml)
    let location = try #require(MCPServers.find(at: ["m"], in: document.root).first)
    let undone = try document.applying(
      UnwrapEdits(document: document).edits(location, keepsEmptyList: true))
    #expect(try location.command(in: undone.root) == ["npx", "-y"])
    let result = String(decoding: undone.bytes, as: UTF8.self)
    #expect(result.contains("# first") && result.contains("# second"))
  }

  @Test("A list that had no items has none after undoing, as another program wrote it in between")
  func emptyList() throws {
    let text = "m:\n  s:\n    args:\n    - wrap\n    - --\n    - npx\n    command: /bin/dormouse\n"
    let document = try ConfigDocument(Array(text.utf8), .yaml)
    let location = try #require(MCPServers.find(at: ["m"], in: document.root).first)
    let undone = try document.applying(
      UnwrapEdits(document: document).edits(location, keepsEmptyList: true))
    #expect(try location.command(in: undone.root) == ["npx"])
    #expect(String(decoding: undone.bytes, as: UTF8.self).contains("args: []\n"))
  }
}
