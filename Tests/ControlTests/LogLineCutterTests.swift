import Testing

@testable import Control

@Suite("The lines of `logs --json`") struct LogLineCutterTests {
  @Test func `Log output that arrives in pieces is cut into lines, and blank lines stay`() {
    var cutter = LogLineCutter()
    #expect(cutter.lines(in: Array("one\ntw".utf8)).map(\.text) == ["one"])
    #expect(cutter.lines(in: []).isEmpty)
    let lines = cutter.lines(in: Array("o\r\n\nthree".utf8))
    #expect(lines.map(\.text) == ["two", ""] && lines.map(\.end) == [9, 10])
    let last = cutter.finish()
    #expect(last?.text == "three" && last?.end == 15)
    #expect(cutter.finish() == nil)
  }

  @Test("A character that arrives in two pieces is whole, and bytes that aren't UTF-8 are replaced")
  func characters() {
    var cutter = LogLineCutter()
    let bytes = Array("grün\n".utf8)
    #expect(cutter.lines(in: Array(bytes[..<3])).isEmpty)
    #expect(cutter.lines(in: Array(bytes[3...])).map(\.text) == ["grün"])
    #expect(cutter.lines(in: [0xFF, 0x0A]).map(\.text) == ["\u{FFFD}"])
  }

  @Test func `A log line without an end is cut, and the cut is marked`() {
    var cutter = LogLineCutter()
    let maxLine = LogLineCutter.maxLine
    let lines = cutter.lines(in: [UInt8](repeating: 0x61, count: maxLine * 2 + 1))
    #expect(lines.map(\.text.count) == [maxLine, maxLine] && lines.allSatisfy(\.isCut))
    #expect(cutter.lines(in: Array("b\n".utf8)).map(\.text) == ["ab"])
    let whole = cutter.lines(in: [UInt8](repeating: 0x61, count: maxLine + 1) + [0x0A])
    #expect(whole.map(\.isCut) == [true, false])
  }
}
