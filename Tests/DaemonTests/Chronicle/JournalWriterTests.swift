import Linux
import Policy
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
    let played = try world.play()
    #expect(played.beginnings == [.newRun, .afterGap])
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
