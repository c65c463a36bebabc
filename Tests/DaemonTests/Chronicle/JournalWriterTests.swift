import Glibc
import Linux
import Policy
import Synchronization
import TestSupport
import Testing

@testable import Daemon
@testable import PolicyFile

@Suite("The journal's writer") struct JournalWriterTests {
  @Test func `A journal that is played again leads to the same engine`() throws {
    let world = try JournalWorld()
    world.begin()
    world.failLaunch(1)
    world.sample(2)
    var policy = world.policy
    policy.background.suspendAfter = .seconds(7)
    world.engine.setPolicy(policy)
    world.writer.record(policy, at: world.at(3))
    world.failLaunch(4)
    try world.checkWhole()
    let played = try world.play()
    #expect(played.headers.map(\.version) == ["1.2.3"] && played.headers.map(\.segment) == [0])
    #expect(played.headers.first?.run == world.writer.run && played.events == 5)
    #expect(world.lines.all.isEmpty)
  }

  @Test func `A new daemon's first file follows the last one, and other files stay`() throws {
    let world = try JournalWorld()
    for name in ["00000007.jsonl", "notes.txt", "x.jsonl"] {
      try world.scratch.write("journal/\(name)", "")
    }
    let next = try JournalWriter(
      JournalConfiguration(), directory: world.path, version: "1", queue: world.queue,
      log: world.lines.log)
    next.begin(world.engine, at: world.at(0))
    world.waitForDisk()
    #expect(try world.files == ["00000007.jsonl", "00000008.jsonl", "x.jsonl"])
    #expect(fileExists("\(world.path)/notes.txt"))
  }

  @Test func `A full segment is followed by the next one, and the oldest are removed`() throws {
    let world = try JournalWorld(size: ByteCount(6000), keep: 3)
    world.begin()
    for second in 1...100 { world.failLaunch(Int64(second)) }
    world.writer.flush(at: world.at(101))
    world.waitForDisk()
    let played = try world.play()
    #expect(played.player.problems.isEmpty && played.player.engine.isSame(as: world.engine))
    // Only the first remaining segment begins with an engine that isn't known.
    let files = try world.files.count
    #expect(played.beginnings == [.first] && played.headers.count == files)
    let first = try #require(played.headers.first?.segment)
    #expect(
      first > 0
        && played.headers.map(\.segment) == (0..<Int64(played.headers.count)).map { first + $0 })
    let sizes = try world.files.map { try readFile("\(world.path)/\($0)").count }
    let largest = try #require(sizes.max())
    #expect(sizes.count < 50 && sizes.reduce(0, +) <= max(6000 * 3 + largest, 3 * largest))
  }

  @Test func `A transition is written at once, and a sample after 30 s at the latest`() throws {
    let world = try JournalWorld()
    world.begin()
    world.waitForDisk()
    let begun = try world.bytes
    #expect(begun > 0, "the engine as it was")
    for second in 1...29 { world.sample(Int64(second)) }
    world.waitForDisk()
    #expect(try world.bytes == begun)
    world.sample(30)
    world.waitForDisk()
    let sampled = try world.bytes
    #expect(sampled > begun)
    world.failLaunch(31)
    world.waitForDisk()
    #expect(try world.bytes > sampled)
    try world.checkWhole()
  }

  @Test func `A clock that was set is recorded, and one that is only steered isn't`() throws {
    let world = try JournalWorld()
    world.begin()
    world.wall.nanoseconds += 40_000_000 + 1_000_000_000
    world.failLaunch(1)
    world.wall.nanoseconds += 3600 * 1_000_000_000
    world.failLaunch(1)
    world.failLaunch(1)
    world.waitForDisk()
    let text = String(decoding: try readFile("\(world.path)/00000001.jsonl"), as: UTF8.self)
    // One is in the header, and one was written for the hour.
    #expect(text.split(separator: "\n").count { $0.contains("\"wall\":") } == 2)
    try world.checkWhole()
  }

  @Test func `A full disk pauses the journal for a minute, and leaves no useless files`() throws {
    let world = try JournalWorld()
    try world.disk.setFull(true)
    world.begin()
    world.waitForDisk()
    for second in 1...60 { world.sample(Int64(second)) }
    world.waitForDisk()
    #expect(world.lines.all.count == 1)
    #expect(
      world.lines.all[0].hasPrefix("error: journal paused for 1 min: write ")
        && world.lines.all[0].hasSuffix("No space left on device"))
    #expect(try world.files.isEmpty)
    // The second attempt fails, and the third succeeds.
    world.sample(61)
    world.waitForDisk()
    world.sample(62)
    #expect(try world.lines.all.count == 2 && world.files.isEmpty)
    try world.disk.setFull(false)
    world.failLaunch(121)
    world.failLaunch(122)
    world.waitForDisk()
    #expect(try world.files == ["00000003.jsonl"] && world.lines.all.count == 2)
    try world.checkWhole()
    #expect(try world.play().headers.map(\.segment) == [4], "the gap shows")
  }

  @Test func `What was written before a failure stays, and the gap is visible`() throws {
    let world = try JournalWorld()
    world.begin()
    world.failLaunch(1)
    world.waitForDisk()
    try world.disk.setFull(true)
    world.failLaunch(2)
    world.waitForDisk()
    world.failLaunch(3)
    try world.disk.setFull(false)
    for second in 4...70 { world.failLaunch(Int64(second)) }
    try world.checkWhole()
    #expect(try world.play().beginnings == [.newRun, .afterGap])
    #expect(try world.files.count == 2 && world.lines.all.count == 1)
  }

  @Test(arguments: [ByteCount.megabytes(8), ByteCount.kilobytes(64)])
  func `A disk that doesn't answer costs at most 4 MB of the journal`(size: ByteCount) throws {
    let world = try JournalWorld(size: size, keep: 10_000)
    world.begin()
    world.waitForDisk()
    let gate = ThreadGate()
    defer { gate.open() }
    world.queue.submit { gate.pass() }
    let long = String(repeating: "x", count: 1 << 20)
    // With small segments, each event is followed by a new segment.
    for second in 1...100 { world.failLaunch(Int64(second), reason: long) }
    #expect(world.lines.all == ["error: journal paused for 1 min: the disk is too slow"])
    gate.open()
    world.waitForDisk()
    world.failLaunch(200)
    world.failLaunch(201)
    world.writer.flush(at: world.at(202))
    world.waitForDisk()
    let played = try world.play()
    #expect(played.player.problems.isEmpty && played.player.engine.isSame(as: world.engine))
    #expect(played.beginnings.last == .afterGap && world.lines.all.count == 1)
    let fileCount = try world.files.count
    // Each file has a beginning: none was made for a segment that was never written.
    #expect(played.headers.count == fileCount)
  }

  @Test func `A directory that was removed is made again, not by the loop's thread`() throws {
    let world = try JournalWorld()
    world.begin()
    world.waitForDisk()
    Scratch.remove(world.path)
    try world.disk.setFull(true)
    world.failLaunch(1)
    world.waitForDisk()
    world.sample(2)
    #expect(world.lines.all.count == 1)
    try world.disk.setFull(false)
    let gate = ThreadGate()
    defer { gate.open() }
    world.queue.submit { gate.pass() }
    world.sample(100)
    #expect(!fileExists(world.path), "the loop's thread waits for no disk")
    gate.open()
    world.waitForDisk()
    world.failLaunch(101)
    try world.checkWhole()
    #expect(try world.files == ["00000002.jsonl"])
  }
}

@Suite("The journal's file") struct SegmentFileTests {
  private let scratch: Scratch
  private let queue = WorkQueue(name: "test")

  init() throws { scratch = try Scratch() }

  private func text(_ name: String) throws -> String { try readText("\(scratch.path)/\(name)") }

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
