import Testing
import WorkerProtocol

@Suite struct ShownTextTests {
  @Test(
    arguments: [
      ("upload", "upload"), ("", ""), ("ü\u{1B}[2J\u{202E}x", "ü\u{FFFD}[2J\u{FFFD}x"),
      (String(repeating: "x", count: 600), String(repeating: "x", count: 512)),
      // Each of these characters has three bytes, and none is cut.
      (String(repeating: "\u{1}", count: 600), String(repeating: "\u{FFFD}", count: 170)),
      ("x" + String(repeating: "ü", count: 600), "x" + String(repeating: "ü", count: 255)),
    ])
  func `A text is cut and made printable, and a second time changes nothing`(
    text: String, shown: String
  ) {
    #expect(WorkerProtocol.shown(text) == shown)
    #expect(WorkerProtocol.shown(shown) == shown)
  }
}
