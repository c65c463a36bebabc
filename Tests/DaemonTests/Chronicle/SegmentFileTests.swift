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

  private var names: [String] {
    get throws { try listDirectory(scratch.path).sorted() }
  }

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

  @Test("A file that exists is never written to: that segment fails, and the next one is written")
  func exists() throws {
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

  @Test func `Bytes that wait for a slow disk are counted until they are written`() throws {
    let gate = ThreadGate()
    defer { gate.open() }
    queue.submit { gate.pass() }
    let file = SegmentFile(queue: queue)
    file.begin("\(scratch.path)/1")
    file.append(bytes("12345"))
    file.append(bytes("678"))
    #expect(file.pending == 8)
    gate.open()
    #expect(queue.drain(within: .seconds(60)))
    #expect(try file.pending == 0 && text("1") == "12345678")
  }

  @Test("On a full disk, a segment without content is removed, and what follows is dropped")
  func full() throws {
    let file = SegmentFile(queue: queue) { (path) throws(SystemCallError) in
      _ = try SegmentFile.create(path)
      return try Descriptor.open("/dev/full", O_WRONLY)
    }
    file.begin("\(scratch.path)/1")
    file.append(bytes("beginning"))
    file.append(bytes("more"))
    #expect(queue.drain(within: .seconds(60)))
    let failure = try #require(file.consumeFailure())
    #expect(failure.code == ENOSPC && failure.subject == "\(scratch.path)/1")
    #expect(try names.isEmpty, "an hour of a full disk would leave 60 such files")
    #expect(file.pending == 0)
  }

  @Test func `A segment that has content stays when the disk becomes full`() throws {
    let opened = Mutex<Descriptor?>(nil)
    let file = SegmentFile(queue: queue) { (path) throws(SystemCallError) in
      let descriptor = try SegmentFile.create(path)
      opened.withLock { $0 = descriptor }
      return descriptor
    }
    file.begin("\(scratch.path)/1")
    file.append(bytes("content\n"))
    #expect(queue.drain(within: .seconds(60)))
    let full = try Descriptor.open("/dev/full", O_WRONLY)
    let descriptor = try #require(opened.withLock { $0 })
    #expect(dup2(full.raw, descriptor.raw) >= 0)
    file.append(bytes("lost"))
    #expect(queue.drain(within: .seconds(60)))
    #expect(try file.consumeFailure()?.code == ENOSPC && text("1") == "content\n")
  }

  @Test(
    "A write that the kernel shortens is continued, and one that fails half-way ends the segment")
  func short() throws {
    var ends: [Int32] = [0, 0]
    try #require(pipe(&ends) == 0)
    let (reader, writer) = (Descriptor(owning: ends[0]), Descriptor(owning: ends[1]))
    for end in ends { _ = fcntl(end, F_SETFL, O_NONBLOCK) }
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
