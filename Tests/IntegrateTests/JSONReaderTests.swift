import Testing

@testable import Integrate

@Suite("JSON with comments") struct JSONReaderTests {
  private func read(_ text: String) throws(ConfigSyntaxError) -> ConfigDocument {
    try ConfigDocument(Array(text.utf8), .json)
  }

  private func text(_ value: ConfigValue?, in document: ConfigDocument) -> String {
    value.map { String(decoding: document.bytes[$0.range], as: UTF8.self) } ?? "none"
  }

  @Test("Each value has the range of its bytes, also between comments and after a byte order mark")
  func ranges() throws {
    let document = try read(
      """
      \u{FEFF}// before
      { /* a */ "a" /* b */ : /* c */ "x\\u0041\\n" , // d
        "list": [ 1, -2.5e3, true, null, { "deep": [] }, ], // the commas are permitted
        "\\u00e9\\ud83d\\ude00": "/* no comment */",
      } // after
      """)
    #expect(document.root["a"]?.text == "xA\n")
    #expect(text(document.root["a"], in: document) == #""x\u0041\n""#)
    #expect(text(document.root["list"]?.list?[4], in: document) == #"{ "deep": [] }"#)
    #expect(document.root["list"]?.list?.count == 5)
    #expect(document.root["é😀"]?.text == "/* no comment */")
    let key = try #require(document.root.member("é😀")).key
    #expect(String(decoding: document.bytes[key], as: UTF8.self) == #""\u00e9\ud83d\ude00""#)
  }

  @Test func `An empty file and a file of comments have no members`() throws {
    for text in ["", " \n", "\u{FEFF}", "// nothing\n"] {
      #expect(try read(text).root.members?.isEmpty == true, "\(text)")
    }
  }

  @Test(
    "A file with an error is refused, with the line and column of the error",
    arguments: [
      ("{\n  \"a\": 1,,\n}", 2, 10, "a key in quotes"),
      ("{\r\n  \"é\": tru\r\n}", 2, 8, "a value"),
      ("\u{FEFF}[1 2]", 1, 4, "`,` or `]`"),
      ("{\"a\": \"x", 1, 7, "no end"),
      ("{\"a\": 1, \"a\": 2}", 1, 10, "already"),
      ("{\"a\" 1}", 1, 6, "`:`"),
      ("[1] [2]", 1, 5, "more after the end"),
      ("[\"\\x\"]", 1, 3, "no escape"),
      ("[\"\\u12\"]", 1, 3, "four hexadecimal digits"),
      ("/* open", 1, 1, "no end"),
      ("[1", 1, 3, "the file ends"),
      ("[\"a\tb\"]", 1, 4, "control character"),
      ("{'a': 1}", 1, 2, "a key in quotes"),
      ("[+1]", 1, 2, "a value"),
    ])
  func errors(text: String, line: Int, column: Int, reason: String) {
    expectError(text, .json, line: line, column: column, reason: reason)
  }

  @Test func `Thousands of open brackets are an error, not a crash`() {
    for open in ["[", "{\"a\":"] {
      #expect(throws: ConfigSyntaxError.self) {
        try read(String(repeating: open, count: 100_000))
      }
    }
  }

  @Test func `A file that is cut anywhere is an error or a shorter document, never a crash`() {
    let bytes = Array(
      """
      {"a": [1, "x\\u00e9\\"", {"b": null}], // c
      /* d */ "e": {"f": [[], {}]},}
      """.utf8)
    for count in bytes.indices {
      // Only a crash would be a failure.
      _ = try? ConfigDocument(Array(bytes.prefix(count)), .json)
    }
  }
}
