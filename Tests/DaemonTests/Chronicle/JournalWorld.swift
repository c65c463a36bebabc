import Glibc
import Journal
import Lifecycle
import Linux
import Policy
import Synchronization
import TestSupport
import Testing

@testable import Daemon
@testable import PolicyFile

/// An engine whose events are journaled, on a disk that fails when a test decides.
final class JournalWorld {
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

    /// Makes the disk full. Writes to open files fail too.
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

  /// Starts the worker, whose launch fails: two transitions.
  func failLaunch(_ seconds: Int64, reason: String = "no such file") {
    send(seconds, .request(Request(id: UInt64(seconds), verb: .start, worker: id)))
    send(seconds, .launchFailed(id, reason))
  }

  /// Waits until everything that was flushed is in the files.
  func waitForDisk() { #expect(queue.drain(within: .seconds(60))) }

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
    var (player, played) = (JournalPlayer(), Played())
    player.play(try writer.directory.segments()) { step, _ in
      switch step.kind {
      case .began(let header, let beginning):
        played.headers.append(header)
        played.beginnings.append(beginning)
      case .continued(let header): played.headers.append(header)
      case .event: played.events += 1
      case .policy: break
      }
    }
    played.player = player
    return played
  }

  /// Checks that a replay of the whole journal leads to the engine's state without a problem.
  func checkWhole() throws {
    writer.flush(at: at(1_000_000))
    waitForDisk()
    let player = try play().player
    #expect(player.problems.isEmpty && player.engine.isSame(as: engine), "\(player.problems)")
  }
}
