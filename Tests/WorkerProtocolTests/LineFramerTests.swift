import Testing

@testable import JSONLines

@Suite struct LineFraming {
  private let stream = Array("{\"a\":1}\r\nzweite Zeile ü\n\n\r\nlast\n".utf8)
  private let lines = ["{\"a\":1}", "zweite Zeile ü", "last"]

  private func drain(_ framer: inout LineFramer) throws -> [String] {
    var result: [String] = []
    while let line = try framer.next() { result.append(String(decoding: line, as: UTF8.self)) }
    return result
  }

  @Test func `A stream gives the same lines wherever it is cut in two`() throws {
    for cut in 0...stream.count {
      var framer = LineFramer()
      framer.append(stream[..<cut])
      var result = try drain(&framer)
      framer.append(stream[cut...])
      result += try drain(&framer)
      #expect(result == lines, "cut at \(cut)")
      #expect(framer.pendingBytes == 0)
    }
  }

  @Test func `A stream gives the same lines byte by byte, read after each byte or only at the end`()
    throws
  {
    var eager = LineFramer()
    var patient = LineFramer()
    var result: [String] = []
    for byte in stream {
      eager.append([byte])
      patient.append([byte])
      result += try drain(&eager)
    }
    #expect(result == lines)
    #expect(try drain(&patient) == lines)
  }

  @Test func `An unfinished line isn't returned, and its bytes are counted`() throws {
    var framer = LineFramer()
    framer.append(Array("done\nnot yet".utf8))
    #expect(try drain(&framer) == ["done"])
    #expect(framer.pendingBytes == 7)
  }

  @Test(arguments: ["\n", "\r\n"])
  func `A line of exactly the maximum length passes`(end: String) throws {
    var framer = LineFramer(maximumLength: 8)
    framer.append(Array("12345678".utf8))
    #expect(try framer.next() == nil)
    for byte in end.utf8 {
      framer.append([byte])
    }
    #expect(try drain(&framer) == ["12345678"])
  }

  @Test(arguments: ["123456789\n", "123456789\r\n", "1234567890"])
  func `A longer line is an overflow, whether it has ended or not`(line: String) {
    var framer = LineFramer(maximumLength: 8)
    framer.append(Array(line.utf8))
    #expect(throws: LineFramer.Overflow(maximumLength: 8)) { try framer.next() }
  }

  @Test func `Lines before an overflow are returned, and nothing after it`() throws {
    var framer = LineFramer(maximumLength: 8)
    framer.append(Array("first\n1234567890123\nsecond\n".utf8))
    #expect(try framer.next() == Array("first".utf8))
    #expect(throws: LineFramer.Overflow.self) { try framer.next() }
    framer.append(Array("third\n".utf8))
    #expect(throws: LineFramer.Overflow.self) { try framer.next() }
    #expect(framer.pendingBytes == 0)
  }

  @Test func `The default maximum length of a line is one mebibyte`() throws {
    var framer = LineFramer()
    framer.append([UInt8](repeating: 0x20, count: 1 << 20) + [0x0A])
    #expect(try framer.next()?.count == 1 << 20)
    framer.append([UInt8](repeating: 0x20, count: (1 << 20) + 1) + [0x0A])
    #expect(throws: LineFramer.Overflow(maximumLength: 1 << 20)) { try framer.next() }
  }

  @Test func `Bytes that aren't text pass unchanged`() throws {
    var framer = LineFramer()
    let garbage = (0...255).map { UInt8($0) }.filter { $0 != 0x0A }
    framer.append(garbage + [0x0A])
    #expect(try framer.next() == garbage)
  }
}
