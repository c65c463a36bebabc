import Testing

@testable import Control

@Suite("The lines of `logs --json`") struct LogLineCutterTests {
  private typealias Line = LogLineCutter.Line

  @Test func `Log output that arrives in pieces is cut into lines, and blank lines stay`() {
    var cutter = LogLineCutter()
    #expect(cutter.lines(in: Array("one\ntw".utf8)) == [Line(text: "one")])
    #expect(cutter.lines(in: []) == [])
    #expect(
      cutter.lines(in: Array("o\r\n\nthree".utf8)) == [Line(text: "two"), Line(text: "")])
    #expect(cutter.finish() == [Line(text: "three")])
    #expect(cutter.finish() == [])
  }

  @Test("A character that arrives in two pieces is whole, and bytes that aren't UTF-8 are replaced")
  func characters() {
    var cutter = LogLineCutter()
    let bytes = Array("grün\n".utf8)
    #expect(cutter.lines(in: Array(bytes[..<3])) == [])
    #expect(cutter.lines(in: Array(bytes[3...])) == [Line(text: "grün")])
    #expect(cutter.lines(in: [0xFF, 0x0A]) == [Line(text: "\u{FFFD}")])
  }

  @Test func `A log line without an end is cut, and the cut is marked`() {
    var cutter = LogLineCutter()
    let maxLine = LogLineCutter.maxLine
    let lines = cutter.lines(in: [UInt8](repeating: 0x61, count: maxLine * 2 + 1))
    #expect(lines.map(\.text.count) == [maxLine, maxLine] && lines.allSatisfy(\.isCut))
    #expect(cutter.lines(in: Array("b\n".utf8)) == [Line(text: "ab")])
    let whole = cutter.lines(in: [UInt8](repeating: 0x61, count: maxLine + 1) + [0x0A])
    #expect(whole.map(\.isCut) == [true, false])
  }
}
