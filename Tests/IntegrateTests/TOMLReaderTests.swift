import Testing

@testable import Integrate

@Suite("TOML") struct TOMLReaderTests {
  private func read(_ text: String) throws(ConfigSyntaxError) -> ConfigDocument {
    try ConfigDocument(Array(text.utf8), .toml)
  }

  @Test("Tables, dotted keys, quoted keys, inline tables and arrays of tables are read")
  func tables() throws {
    let root = try read(
      """
      # a comment
      title = "x" # another
      a.b."c.d" = 1
      a.b.e = 1979-05-27 07:32:00
      inline = { x = 'y', z.w = [1, 2, ] }
      [servers."one two"]
      command = 'C:\\x'
      [servers."one two".env]
      KEY = "v"
      [servers]
      late = true
      [[many]]
      n = 1
      [many.inner]
      m = 2
      [[many]]
      n = 3
      """
    ).root
    #expect(root[["a", "b", "e"]]?.isWord("1979-05-27 07:32:00") == true)
    #expect(root[["a", "b", "c.d"]]?.isWord("1") == true)
    #expect(root[["inline", "z", "w"]]?.list?.count == 2)
    #expect(root[["servers", "one two", "command"]]?.text == "C:\\x")
    #expect(root[["servers", "one two", "env", "KEY"]]?.text == "v")
    #expect(root[["servers", "late"]]?.isWord("true") == true)
    let many = try #require(root["many"]?.list)
    #expect(many.count == 2 && many[0]["inner"]?["m"] != nil && many[1]["inner"] == nil)
  }

  @Test func `Texts of all four kinds are read, with escapes and line ends`() throws {
    let document = try read(
      #"""
      basic = "a\tb\u00e9\U0001F600\\ \"q\""
      literal = 'a\tb'
      long = """
      first
      sec\
         ond ""quoted"" \u0041"""""
      raw = '''
      a\tb'c'''
      empty = ""
      list = [ # comment
        "x", # ] no end
        """y
      z""", 'w',
      ]
      """#)
    let root = document.root
    #expect(root["basic"]?.text == "a\tbé😀\\ \"q\"")
    #expect(root["literal"]?.text == "a\\tb")
    #expect(root["long"]?.text == "first\nsecond \"\"quoted\"\" A\"\"")
    #expect(root["raw"]?.text == "a\\tb'c")
    #expect(root["empty"]?.text == "")
    #expect(root["list"]?.list?.map(\.text) == ["x", "y\nz", "w"])
    let range = try #require(root["list"]?.list?[1].range)
    #expect(String(decoding: document.bytes[range], as: UTF8.self) == "\"\"\"y\nz\"\"\"")
  }

  @Test("Line ends of Windows, a byte order mark and a last line without a line end are accepted")
  func lineEnds() throws {
    let root = try read("\u{FEFF}a = 1\r\n\r\n[t] # c\r\nb = [\r\n 'x',\r\n]\r\nc = 'd'").root
    #expect(root[["t", "b"]]?.list?.first?.text == "x" && root[["t", "c"]]?.text == "d")
  }

  @Test(
    "A file with an error is refused, with the line and column of the error",
    arguments: [
      ("a = 1\na = 2", 2, 1, "defined twice"),
      ("[t]\nx = 1\n[t]\n", 3, 2, "defined twice"),
      ("a = {x = 1}\n[a.b]\n", 2, 2, "defined twice"),
      ("a.b = 1\n[a]\n", 2, 2, "defined twice"),
      ("a = \n", 1, 5, "a value"),
      ("a = \"x\nb = 1", 1, 5, "no end"),
      ("a = 1 b = 2", 1, 7, "the end of the line"),
      ("[t\n", 1, 3, "`]`"),
      ("= 1", 1, 1, "a key"),
      ("a = [1 2]", 1, 8, "`,` or `]`"),
      ("a = \"\\q\"", 1, 6, "no escape"),
      ("a = \"\\ud800\"", 1, 6, "no character"),
      ("a = yes", 1, 5, "a value"),
      ("a = [1", 1, 7, "the file ends"),
      ("a = [1]\n[[a]]", 2, 3, "defined twice"),
    ])
  func errors(text: String, line: Int, column: Int, reason: String) {
    expectError(text, .toml, line: line, column: column, reason: reason)
  }

  @Test func `A file that is cut anywhere is an error or a shorter document, never a crash`() {
    let bytes = Array(
      "[a.\"b\"]\nc = ['x', \"\"\"y\\u00e9\n\"\"\", {d = 1}]\r\n[[e]]\nf.g = 2020-01-01 00:00:00\n"
        .utf8)
    for count in bytes.indices {
      // Only a crash would be a failure.
      _ = try? ConfigDocument(Array(bytes.prefix(count)), .toml)
    }
    #expect(throws: ConfigSyntaxError.self) {
      try read("a = " + String(repeating: "[", count: 100_000))
    }
  }
}
