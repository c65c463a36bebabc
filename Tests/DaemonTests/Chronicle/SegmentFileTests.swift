import Glibc
import Linux
import Synchronization
import TestSupport
import Testing

@testable import Daemon

@Suite("The journal's file") struct SegmentFileTests {
  private let scratch: Scratch
  private let queue = WorkQueue(name: "test")

  init() throws { scratch = try Scratch() }

  private func text(_ name: String) throws -> String {
    String(decoding: try readFile("\(scratch.path)/\(name)"), as: UTF8.self)
  }

  private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

  @Test func `Bytes are appended in their order, to the segment that was begun last`() throws {
    let file = SegmentFile(queue: queue)
    let calls = Mutex<[String]>([])
    for name in ["1", "2"] {
      file.begin("\(scratch.path)/\(name)") {
        calls.withLock { $0.append("before \(name)") }
      } then: {
        calls.withLock { $0.append("after \(name)") }
      }
      for chunk in ["a", "b", "c"] { file.append(bytes("\(name)\(chunk)\n")) }
    }
    #expect(queue.drain(within: .seconds(60)))
    #expect(try text("1") == "1a\n1b\n1c\n" && text("2") == "2a\n2b\n2c\n")
    #expect(calls.withLock { $0 } == ["before 1", "after 1", "before 2", "after 2"])
    #expect(file.pending == 0 && file.consumeFailure() == nil)
    // Other users can't read what the daemon knows about its workers.
    #expect((fileStatus(of: "\(scratch.path)/1")?.st_mode ?? 0) & 0o777 == 0o600)
  }

  @Test func `A file that exists is never written to: that segment fails`() throws {
    try scratch.write("1", "another daemon's")
    let file = SegmentFile(queue: queue)
    let isThere = Mutex(false)
    file.begin("\(scratch.path)/1", then: { isThere.withLock { $0 = true } })
    file.append(bytes("lost"))
    #expect(queue.drain(within: .seconds(60)))
    #expect(!isThere.withLock { $0 })
    #expect(file.consumeFailure()?.code == EEXIST)
    #expect(file.consumeFailure() == nil, "a failure is reported once")
    file.begin("\(scratch.path)/2")
    file.append(bytes("kept"))
    #expect(queue.drain(within: .seconds(60)))
    #expect(try text("1") == "another daemon's" && text("2") == "kept" && file.pending == 0)
  }

  @Test func `A shortened write is continued, and one that fails ends the segment`() throws {
    let (reader, writer) = try Descriptor.pipe()
    for end in [reader, writer] { _ = fcntl(end.raw, F_SETFL, O_NONBLOCK) }
    let file = SegmentFile(queue: queue) { _ in writer }
    file.begin("\(scratch.path)/1")
    // The bytes are more than a pipe's capacity: the kernel accepts some of them, and refuses the
    // others (EAGAIN).
    let bytes = (0..<300_000).map { UInt8(truncatingIfNeeded: $0 % 251) }
    file.append(bytes)
    file.append([1, 2, 3])
    #expect(queue.drain(within: .seconds(60)))
    #expect(file.consumeFailure()?.code == EAGAIN)
    var written: [UInt8] = []
    // The read throws when nothing is left, because the test itself has the other end open.
    while let chunk = try? reader.read(upTo: 1 << 16), !chunk.isEmpty { written += chunk }
    #expect(
      written.count >= 4096 && written.count < bytes.count
        && written.elementsEqual(bytes.prefix(written.count)))
  }
}
