import Glibc
import Linux
import Testing

@testable import Daemon

@Suite("The daemon's log") struct LogWriterTests {
  private func pipe() throws -> (out: Descriptor, into: Descriptor) {
    var ends: [Int32] = [-1, -1]
    _ = try systemCall("pipe") { Glibc.pipe(&ends) }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    return (Descriptor(owning: ends[0]), Descriptor(owning: ends[1]))
  }

  @Test
  func `Logging doesn't wait for a reader that has stopped, and lost lines are counted`() throws {
    let (out, into) = try pipe()
    let writer = LogWriter(into)
    let line = Array((String(repeating: "x", count: 999) + "\n").utf8)
    let start = ContinuousClock.now
    for _ in 0..<3000 { writer.write(line) { Array("lost \($0)\n".utf8) } }
    // In an earlier version, the 66th line waited for the reader.
    #expect(ContinuousClock.now - start < .seconds(30))

    // Counts written and lost lines. The thread may begin late, and report twice.
    var text: [UInt8] = []
    var accounted = 0
    let deadline = Deadline(in: .seconds(60))
    while accounted < 3000, !deadline.hasPassed {
      text += try out.read(upTo: 65536)
      let whole = text.prefix(text.lastIndex(of: UInt8(ascii: "\n")).map { $0 + 1 } ?? 0)
      accounted = String(decoding: whole, as: UTF8.self).split(separator: "\n").reduce(0) {
        $0 + ($1.hasPrefix("lost ") ? Int($1.dropFirst("lost ".count)) ?? 0 : 1)
      }
    }
    #expect(accounted == 3000)
    #expect(String(decoding: text, as: UTF8.self).contains("lost "))
  }

  @Test func `At the daemon's end all of the log is written, as long as a reader reads`() throws {
    let (out, into) = try pipe()
    let writer = LogWriter(into)
    for number in 0..<100 { writer.write(Array("\(number)\n".utf8)) { _ in [] } }
    writer.drain(within: .seconds(60))
    let text = String(decoding: try out.read(upTo: 65536), as: UTF8.self)
    #expect(text == (0..<100).map { "\($0)\n" }.joined())
  }
}
