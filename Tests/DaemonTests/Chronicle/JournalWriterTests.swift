import Glibc
import Journal
import Lifecycle
import Linux
import Policy
import PolicyFile
import Synchronization
import TestSupport
import Testing

@testable import Daemon

@Suite("The journal's writer") struct JournalWriterTests {
  /// An engine whose events are journaled, on a disk that fails when a test says so.
  private final class World {
    let scratch: Scratch
    let queue = WorkQueue(name: "test")
    let lines = LoggedLines()
    let disk = Disk()
    let id = WorkerID("web")
    let policy = LifecyclePolicy(name: "test")
    var engine: Engine
    var wall = WallTime(nanoseconds: 1_790_000_000_000_000_000)
    private(set) var writer: JournalWriter

    final class Disk: Sendable {
      private let state = Mutex<(isFull: Bool, opened: [Descriptor])>((false, []))

      @Sendable func open(_ path: String) throws(SystemCallError) -> Descriptor {
        let descriptor = try SegmentFile.create(path)
        let isFull = state.withLock { state in
          state.opened.append(descriptor)
          return state.isFull
        }
        if isFull { try fill(descriptor) }
        return descriptor
      }

      private func fill(_ descriptor: Descriptor) throws(SystemCallError) {
        let full = try Descriptor.open("/dev/full", O_WRONLY)
        _ = try systemCall("dup2") { dup2(full.raw, descriptor.raw) }
      }

      /// What is open already fails, too.
      func setFull(_ isFull: Bool) throws {
        let opened = state.withLock { state in
          state.isFull = isFull
          return state.opened
        }
        if isFull, let last = opened.last { try fill(last) }
      }
    }

    init(size: ByteCount = .megabytes(8), keep: Int = 8, directory: String = "journal") throws {
      scratch = try Scratch()
      engine = Engine(policy: policy)
      var now: () -> WallTime = { WallTime(nanoseconds: 0) }
      writer = try JournalWriter(
        JournalConfiguration(size: size, keep: keep), directory: "\(scratch.path)/\(directory)",
        version: "1.2.3", queue: queue, wall: { now() }, open: disk.open, log: lines.log)
      now = { [unowned self] in wall }
      _ = engine.handle(.added(id, WorkerProfile(policy: policy)), at: at(0))
    }

    func at(_ seconds: Int64) -> Instant { .zero + .seconds(seconds) }

    func begin(at seconds: Int64 = 0) { writer.begin(engine, at: at(seconds)) }

    func send(_ seconds: Int64, _ event: Event) {
      let directives = engine.handle(event, at: at(seconds))
      writer.record(event, directives: directives, engine: engine, at: at(seconds))
    }

    func sample(_ seconds: Int64) {
      send(
        seconds, .memory(MemoryReading(total: .gigabytes(8), available: .gigabytes(4))))
    }

    /// It is started, and its launch fails: two transitions.
    func failLaunch(_ seconds: Int64, why: String = "no such file") {
      send(seconds, .request(Request(id: UInt64(seconds), verb: .start, worker: id)))
      send(seconds, .launchFailed(id, why))
    }

    /// Everything that was flushed is in the files.
    func settle() { #expect(queue.drain(within: .seconds(60))) }

    var path: String { writer.directory.path }
    var files: [String] {
      get throws { try listDirectory(path).filter { $0.hasSuffix(".jsonl") }.sorted() }
    }
    var bytes: Int {
      get throws { try files.reduce(0) { try $0 + readFile("\(path)/\($1)").count } }
    }

    struct Played {
      var player = JournalPlayer()
      var headers: [SegmentHeader] = []
      var beginnings: [JournalStep.Beginning] = []
      var events = 0
    }

    func play() throws -> Played {
      var played = Played()
      var (headers, beginnings, events) = (played.headers, played.beginnings, 0)
      played.player.play(try writer.directory.segments()) { step, _ in
        switch step.what {
        case .began(let header, let beginning):
          headers.append(header)
          beginnings.append(beginning)
        case .wentOn(let header): headers.append(header)
        case .event: events += 1
        case .policy: break
        }
      }
      (played.headers, played.beginnings, played.events) = (headers, beginnings, events)
      return played
    }

    /// The whole journal leads to the engine as it is, without a problem.
    func checkWhole() throws {
      writer.flush(at: at(1_000_000))
      settle()
      let player = try play().player
      #expect(player.problems.isEmpty && player.engine.isSame(as: engine), "\(player.problems)")
    }
  }

  @Test("A journal that is played again leads to the same engine")
  func played() throws {
    let world = try World()
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

  @Test("A new daemon's first file follows the last one, and other files are left alone")
  func numbers() throws {
    let world = try World()
    for name in ["00000007.jsonl", "notes.txt", "x.jsonl"] {
      try world.scratch.write("journal/\(name)", "")
    }
    let next = try JournalWriter(
      JournalConfiguration(), directory: world.path, version: "1", queue: world.queue,
      log: world.lines.log)
    next.begin(world.engine, at: world.at(0))
    world.settle()
    #expect(try world.files == ["00000007.jsonl", "00000008.jsonl", "x.jsonl"])
    #expect(fileExists("\(world.path)/notes.txt"))
  }

  @Test("A full segment is followed by the next one, and the oldest are removed")
  func rotation() throws {
    let world = try World(size: ByteCount(6000), keep: 3)
    world.begin()
    for second in 1...100 { world.failLaunch(Int64(second)) }
    world.writer.flush(at: world.at(101))
    world.settle()
    let played = try world.play()
    #expect(played.player.problems.isEmpty && played.player.engine.isSame(as: world.engine))
    // Only the first segment that is left begins with an engine that isn't known.
    #expect(played.beginnings == [.first] && played.headers.count == (try world.files.count))
    let first = try #require(played.headers.first?.segment)
    #expect(
      first > 0
        && played.headers.map(\.segment) == (0..<Int64(played.headers.count)).map { first + $0 })
    let sizes = try world.files.map { try readFile("\(world.path)/\($0)").count }
    let largest = try #require(sizes.max())
    #expect(sizes.count < 50 && sizes.reduce(0, +) <= max(6000 * 3 + largest, 3 * largest))
  }

  @Test("A transition is written at once, and a sample after 30 s at the latest")
  func delay() throws {
    let world = try World()
    world.begin()
    world.settle()
    let begun = try world.bytes
    #expect(begun > 0, "the engine as it was")
    for second in 1...29 { world.sample(Int64(second)) }
    world.settle()
    #expect(try world.bytes == begun)
    world.sample(30)
    world.settle()
    let sampled = try world.bytes
    #expect(sampled > begun)
    world.failLaunch(31)
    world.settle()
    #expect(try world.bytes > sampled)
    try world.checkWhole()
  }

  @Test("A clock that was set is recorded, and one that is only steered isn't")
  func clock() throws {
    let world = try World()
    world.begin()
    world.wall.nanoseconds += 40_000_000 + 1_000_000_000
    world.failLaunch(1)
    world.wall.nanoseconds += 3600 * 1_000_000_000
    world.failLaunch(1)
    world.failLaunch(1)
    world.settle()
    let text = String(decoding: try readFile("\(world.path)/00000001.jsonl"), as: UTF8.self)
    // One in the header, one for the hour.
    #expect(text.split(separator: "\n").count { $0.contains("\"wall\":") } == 2)
    try world.checkWhole()
  }

  @Test("A full disk pauses the journal for a minute, logs that once, and leaves no useless files")
  func full() throws {
    let world = try World()
    try world.disk.setFull(true)
    world.begin()
    world.settle()
    for second in 1...60 { world.sample(Int64(second)) }
    world.settle()
    #expect(world.lines.all.count == 1)
    #expect(
      world.lines.all[0].hasPrefix("error: journal paused for 1 min: write ")
        && world.lines.all[0].hasSuffix("No space left on device"))
    #expect(try world.files.isEmpty)
    // The second try fails, and the third doesn't.
    world.sample(61)
    world.settle()
    world.sample(62)
    #expect(try world.lines.all.count == 2 && world.files.isEmpty)
    try world.disk.setFull(false)
    world.failLaunch(121)
    world.failLaunch(122)
    world.settle()
    #expect(try world.files == ["00000003.jsonl"] && world.lines.all.count == 2)
    try world.checkWhole()
    #expect(try world.play().headers.map(\.segment) == [4], "the gap shows")
  }

  @Test("What was written before a failure stays, and a reader learns that something is missing")
  func gap() throws {
    let world = try World()
    world.begin()
    world.failLaunch(1)
    world.settle()
    try world.disk.setFull(true)
    world.failLaunch(2)
    world.settle()
    world.failLaunch(3)
    try world.disk.setFull(false)
    for second in 4...70 { world.failLaunch(Int64(second)) }
    try world.checkWhole()
    let played = try world.play()
    #expect(played.beginnings == [.newRun, .afterGap])
    #expect(try world.files.count == 2 && world.lines.all.count == 1)
  }

  @Test(
    "A disk that doesn't answer costs 4 MB of memory and no more; the journal continues when it answers",
    arguments: [ByteCount.megabytes(8), ByteCount.kilobytes(64)])
  func slow(size: ByteCount) throws {
    let world = try World(size: size, keep: 10_000)
    world.begin()
    world.settle()
    let gate = ThreadGate()
    defer { gate.open() }
    world.queue.submit { gate.pass() }
    let long = String(repeating: "x", count: 1 << 20)
    // With small segments, each event is followed by a new one.
    for second in 1...100 { world.failLaunch(Int64(second), why: long) }
    #expect(world.lines.all == ["error: journal paused for 1 min: the disk is too slow"])
    gate.open()
    world.settle()
    world.failLaunch(200)
    world.failLaunch(201)
    world.writer.flush(at: world.at(202))
    world.settle()
    let played = try world.play()
    #expect(played.player.problems.isEmpty && played.player.engine.isSame(as: world.engine))
    #expect(played.beginnings.last == .afterGap && world.lines.all.count == 1)
    // Each file has a beginning: none was made for a segment that was never written.
    #expect(played.headers.count == (try world.files.count))
  }

  @Test(
    "A directory that another process has removed is made again, by another thread than the loop's")
  func removed() throws {
    let world = try World()
    world.begin()
    world.settle()
    Scratch.remove(world.path)
    try world.disk.setFull(true)
    world.failLaunch(1)
    world.settle()
    world.sample(2)
    #expect(world.lines.all.count == 1)
    try world.disk.setFull(false)
    let gate = ThreadGate()
    defer { gate.open() }
    world.queue.submit { gate.pass() }
    world.sample(100)
    #expect(!fileExists(world.path), "the loop's thread waits for no disk")
    gate.open()
    world.settle()
    world.failLaunch(101)
    try world.checkWhole()
    #expect(try world.files == ["00000002.jsonl"])
  }
}
