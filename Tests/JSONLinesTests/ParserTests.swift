import JSONLines
import Testing

/// Tests RFC 8259 case by case. The kinds of cases are those of Nicolas Seriot's "Parsing JSON is a
/// minefield".
@Suite("JSON") struct ParserTests {
  private static func parse(_ text: String) -> JSON? { JSON(Array(text.utf8)) }

  @Test(
    arguments: [
      ("[]", .array([])), ("{}", .object([])), (" \t\r\n[ ] \n", .array([])), ("null", .null),
      ("true", .bool(true)), ("false", .bool(false)), (#""""#, .string("")), ("0", .int(0)),
      ("-1", .int(-1)), ("-0", .double(-0.0)), ("0.5", .double(0.5)), ("1.0", .double(1)),
      ("1e2", .double(100)), ("1E+2", .double(100)), ("1e-2", .double(0.01)), ("0e1", .double(0)),
      ("-0.0", .double(-0.0)), ("1e-400", .double(0)),
      ("123456789012345678901", .double(123_456_789_012_345_683_968)),
      (
        #"[1,[2,{"a":[]}]]"#,
        .array([.int(1), .array([.int(2), .object([.init("a", .array([]))])])])
      ),
      (#"{"":0," ":1}"#, .object([.init("", .int(0)), .init(" ", .int(1))])),
      (#""\"\\\/\b\f\n\r\t""#, .string("\"\\/\u{8}\u{C}\n\r\t")),
      (#""\u0041\u00e9\u00E9""#, .string("Aéé")),
      (#""\ud83d\ude00\uD83D\uDE00""#, .string("😀😀")), (#""\u0000""#, .string("\0")),
      ("\"\u{7F}\"", .string("\u{7F}")),
      ("\"\u{2028}\u{FFFF}\u{10FFFF}\"", .string("\u{2028}\u{FFFF}\u{10FFFF}")),
      (#""/""#, .string("/")),
      (#"{"b":1,"a":2}"#, .object([.init("b", .int(1)), .init("a", .int(2))])),
    ] as [(String, JSON)])
  func `Valid JSON is read`(text: String, value: JSON) {
    #expect(Self.parse(text) == value)
  }

  @Test(
    "JSON that isn't valid, or that readers would understand differently, is refused",
    arguments: [
      "", " ", "[", "]", "{", "}", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "[1}", "{]", "[[]", "[]]",
      "[] []", "1 2",
      "{\"a\"}", "{\"a\":}", "{\"a\":1", "{\"a\":1,}", "{,\"a\":1}", "{\"a\" 1}", "{a:1}",
      "{'a':1}", "{1:1}",
      "{\"a\":1 \"b\":2}", "{\"a\"::1}", "{null:1}", "'a'", "nul", "nulll", "NULL", "True", "tru",
      "truefalse",
      "undefined", "NaN", "Infinity", "-Infinity", "+1", "-", "--1", "- 1", "01", "-01", "00",
      "0x1", "1_000", "1.", ".5",
      "-.5", "1.e1", "1e", "1e+", "1e1.5", "1e1e1", "0.1.2", "1,", "1a", "१", "1e999", "-1e999",
      "// a\n1", "/* */1", "1#",
      "\u{FEFF}1", "\u{A0}1", "\u{B}1", "\u{C}1", "\u{2028}1", "\"", "\"a", "\"\\\"", "\"\\",
      "\"\\x41\"", "\"\\a\"",
      "\"\\'\"", "\"\\0\"", "\"\\u\"", "\"\\u12\"", "\"\\u123\"", "\"\\u12g4\"", "\"\\u+123\"",
      "\"\\u-123\"", "\"\\u 123\"",
      "\"\\U0041\"", "\"\\ud800\"", "\"\\udc00\"", "\"\\ud800\\ud800\"", "\"\\ud800a\"",
      "\"\\ud800\\n\"",
      "\"\\ude00\\ud83d\"", "\"a\u{0}b\"", "\"a\nb\"", "\"a\tb\"", "\"\\n\tb\"", "\"a\u{1F}\"",
      "\"a\" \"b\"", "\"a\"b",
      "{\"a\":1,\"a\":1}", "{\"a\":1,\"b\":2,\"a\":3}", "{\"b\":1,\"a\":2,\"b\":3}",
      "{\"a\":1,\"\\u0061\":2}",
      "[{\"a\":{\"c\":1,\"c\":2}}]", "{\"a\":1}x", "{\"a\":1}\0", "[1]\u{0}",
    ])
  func invalid(text: String) {
    #expect(Self.parse(text) == nil)
  }

  @Test(
    arguments: [
      [0x22, 0xFF, 0x22], [0x22, 0xC0, 0xAF, 0x22], [0x22, 0xED, 0xA0, 0x80, 0x22],
      [0x22, 0xC3, 0x22],
      [0x22, 0xF4, 0x90, 0x80, 0x80, 0x22], [0x22, 0xE2, 0x82, 0x22], [0xFF, 0xFE, 0x31, 0x00],
      [0x22, 0x5C, 0x6E, 0x80, 0x22], [0x22, 0x5C, 0xC3, 0xA9, 0x22], [0x00, 0x31],
    ] as [[UInt8]])
  func `JSON that isn't UTF-8 is refused`(bytes: [UInt8]) {
    #expect(JSON(bytes) == nil)
  }

  @Test func `JSON is read down to 64 levels, and refused without a crash beyond`() {
    func nested(_ levels: Int, _ open: String, _ close: String) -> String {
      String(repeating: open, count: levels) + "1" + String(repeating: close, count: levels)
    }
    #expect(Self.parse(nested(63, "[", "]")) != nil)
    #expect(Self.parse(nested(64, "[", "]")) == nil)
    #expect(Self.parse(nested(63, "{\"a\":", "}")) != nil)
    #expect(Self.parse(nested(64, "{\"a\":", "}")) == nil)
    #expect(JSON([UInt8](repeating: UInt8(ascii: "["), count: 1 << 20)) == nil)
  }

  @Test func `JSON is written on one line that reads back as the same value`() throws {
    let value = JSON.object([
      .init(
        "z", .array([.null, .bool(true), .int(.min), .unsigned(.max), .double(1), .double(-0.0)])),
      .init("a\"\\/\u{1}\n\u{8}\u{C}\u{1F}\u{7F}é", .string("\u{2028}😀")), .init("", .object([])),
    ])
    #expect(
      String(decoding: value.line, as: UTF8.self)
        == #"{"z":[null,true,-9223372036854775808,18446744073709551615,1.0,-0],"#
        + #""a\"\\/\u0001\n\b\f\u001f"# + "\u{7F}é\":\"\u{2028}😀\",\"\":{}}")
    #expect(JSON(value.line) == value)
  }

  @Test func `JSON that is cut off anywhere, or has one byte changed, causes no crash`() {
    let line = Array(
      #"{"id":18446744073709551615,"list":[1.5e-3,"é\ud83d\ude00",null,{"a":true}]}"#.utf8)
    for length in line.indices { #expect(JSON(Array(line[..<length])) == nil) }
    var random = SeededGenerator(seed: 7)
    for _ in 0..<20_000 {
      var damaged = line
      let place = Int.random(in: line.indices, using: &random)
      damaged[place] = .random(in: .min ... .max, using: &random)
      if let value = JSON(damaged) { #expect(JSON(value.line) == value) }
    }
  }
}
