import Testing

@testable import Control

@Suite struct Quantities {
  @Test(
    arguments: [
      (0, "0 B"), (1023, "1023 B"), (1024, "1.0 KB"), (4096, "4.0 KB"), (1_048_570, "1.0 MB"),
      (1_048_524, "1023.9 KB"), (17_091_789, "16.3 MB"), (1 << 30, "1.0 GB"), (3 << 40, "3.0 TB"),
      (Int64.max, "8388608.0 TB"), (-2048, "-2.0 KB"), (Int64.min, "-8388608.0 TB"),
    ] as [(Int64, String)])
  func `Sizes have one decimal in powers of 1024`(bytes: Int64, text: String) {
    #expect(sizeText(bytes) == text)
  }

  @Test(
    arguments: [
      (0, "0 s"), (0.0004, "400 µs"), (0.0142, "14 ms"), (0.9994, "999 ms"), (0.9996, "1 s"),
      (0.000_85, "850 µs"), (0.0095, "9.5 ms"), (0.0099999, "10 ms"),
      (1.24, "1.2 s"), (9.94, "9.9 s"), (9.96, "10 s"), (59.4, "59 s"), (59.6, "1 m"),
      (245, "4 m 5 s"),
      (3600, "1 h"), (7322, "2 h 2 m"), (86_400, "1 d"), (273_600, "3 d 4 h"), (-3, "0 s"),
      (.infinity, "?"), (.nan, "?"), (1e300, "?"),
    ] as [(Double, String)])
  func `Durations have two units at most`(seconds: Double, text: String) {
    #expect(durationText(seconds) == text)
  }

  @Test(
    arguments: [
      (0, "0 %"), (0.00004, "less than 0.1 %"), (0.049, "less than 0.1 %"), (0.06, "0.1 %"),
      (5, "5.0 %"), (12.34, "12.3 %"), (100, "100.0 %"),
    ] as [(Double, String)])
  func `A share of more than 0 % is never shown as 0 %`(percent: Double, text: String) {
    #expect(percentText(percent) == text)
  }

  @Test(arguments: [
    ("plain-name_1", "plain-name_1"), ("zwölf 鼠", "zwölf 鼠"), ("a\nb\tc\r", "a\\nb\\tc\\r"),
    ("\u{1B}[2J", "\\u{1b}[2J"), ("\u{0}\u{7F}\u{9B}", "\\u{0}\\u{7f}\\u{9b}"),
    ("evil\u{202E}txt", "evil\\u{202e}txt"), ("\u{2028}", "\\u{2028}"),
  ])
  func `Control characters are shown and have no effect`(text: String, expected: String) {
    #expect(escaped(text) == expected)
  }

  @Test(arguments: [
    ("plain\ttext\n", "plain\ttext\n"), ("zwölf 鼠 🐁\n", "zwölf 鼠 🐁\n"),
    ("\u{1B}[1;38:5:196mred\u{1B}[0m", "\u{1B}[1;38:5:196mred\u{1B}[0m\u{1B}[0m"),
    ("\u{1B}[2Jx\u{1B}]0;title\u{7}", "\\u{1b}[2Jx\\u{1b}]0;title\\u{7}"),
    ("\u{1B}[?25l\u{1B}", "\\u{1b}[?25l\\u{1b}"), ("a\u{9B}2Jb\u{202E}c", "a\\u{9b}2Jb\\u{202e}c"),
    ("secret\rpublic\r\nnext\u{8}\u{7F}", "secret\\rpublic\nnext\\u{8}\\u{7f}"),
  ])
  func `A log at a terminal keeps text and colours, and every other control character is shown`(
    text: String, expected: String
  ) {
    for size in [1, 2, 3, 1000] {
      var filter = TerminalFilter()
      var shown: [UInt8] = []
      var remainder = Array(text.utf8)[...]
      while !remainder.isEmpty {
        shown += filter.filter(Array(remainder.prefix(size)))
        remainder = remainder.dropFirst(size)
      }
      shown += filter.finish()
      #expect(String(decoding: shown, as: UTF8.self) == expected, "in pieces of \(size)")
    }
  }

  @Test func `Bytes that aren't UTF-8 are shown as numbers, and nothing is lost`() {
    var filter = TerminalFilter()
    let bytes: [UInt8] = [0x61, 0x9B, 0x32, 0x4A, 0xC3, 0x28, 0xE2, 0x82, 0x0A, 0xFF, 0xF0, 0x9F]
    let shown = filter.filter(bytes) + filter.finish()
    #expect(
      String(decoding: shown, as: UTF8.self) == #"a\x9b2J\xc3(\xe2\x82"# + "\n" + #"\xff\xf0\x9f"#)
  }

  @Test func `JSON for terminals has no raw control character, and its values are the same`() throws
  {
    let text = "\u{1B}\u{7F}\u{9B}2J\u{202E}\u{2066}\u{61C}ü鼠é\u{2028}\"\\"
    let json = try WireCodec.json(for: [text: [text]])
    let shown = String(decoding: json, as: UTF8.self)
    #expect(escaped(shown) == shown)
    #expect(shown.contains(#"\u007f\u009b2J\u202e\u2066\u061cü鼠é\u2028"#))
    #expect(try WireCodec.decode([String: [String]].self, from: json) == [text: [text]])
  }

  @Test func `A command is shown as you could type it in a shell`() {
    #expect(
      shellText(["python3", "-m", "x", "it's", "", "a b", "$HOME", "--k=v", "ü", "\u{1B}"])
        == #"python3 -m x 'it'\''s' '' 'a b' '$HOME' --k=v ü '\u{1b}'"#)
  }

  @Test func `Wide characters take two columns, and combining marks none`() {
    #expect(displayWidth("abc") == 3)
    #expect(displayWidth("鼠") == 2)
    #expect(displayWidth("e\u{301}") == 1)
    #expect(shortened("abcdef", to: 4) == "abc…")
    #expect(shortened("鼠鼠鼠", to: 4) == "鼠…")
    #expect(shortened("abcd", to: 4) == "abcd")
  }
}
