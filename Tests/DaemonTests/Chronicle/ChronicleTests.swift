import Control
import Journal
import Lifecycle
import Linux
import Policy
import Synchronization
import TestSupport
import Testing

@testable import Daemon
@testable import PolicyFile

@Suite("What happened") struct ChronicleTests {
  private let scratch: Scratch
  private let queue = WorkQueue(name: "test")

  init() throws {
    scratch = try Scratch(["reports/.keep": ""])
  }

  private func make(enabled: Bool = true, path: String? = nil) throws -> Chronicle {
    try Chronicle(
      JournalConfiguration(enabled: enabled, path: path), version: "1",
      directory: "\(scratch.path)/journal", reports: "\(scratch.path)/reports", queue: queue,
      log: { _, _ in })
  }

  /// Workers of an engine, which fail to launch.
  private final class World {
    var engine = Engine(policy: LifecyclePolicy(name: "test"))
    private let chronicle: Chronicle
    private var second: Int64 = 0
    var now: Instant { .zero + .seconds(second) }

    init(_ chronicle: Chronicle, _ workers: String...) {
      self.chronicle = chronicle
      for worker in workers {
        _ = engine.handle(
          .added(WorkerID(worker), WorkerProfile(policy: engine.policy)), at: .zero)
      }
      chronicle.begin(engine, at: now)
    }

    func fail(_ worker: String) {
      second += 1
      send(.request(Request(id: UInt64(second), verb: .start, worker: WorkerID(worker))))
      send(.launchFailed(WorkerID(worker), "no such file"))
    }

    private func send(_ event: Event) {
      let directives = engine.handle(event, at: now)
      chronicle.handled(event, directives: directives, engine: engine, at: now)
    }
  }

  private final class Heard {
    var events: [EventRecord] = []
    var workers: Set<String> { Set(events.compactMap(\.worker)) }
  }

  @Test func `Each observer gets all events, until it is removed`() throws {
    let chronicle = try make()
    let world = World(chronicle, "web", "db")
    let (hooks, clients) = (Heard(), Heard())
    chronicle.observe(as: .hooks) { hooks.events.append($1) }
    chronicle.observe(as: .clients) { clients.events.append($1) }
    world.fail("db")
    #expect(hooks.workers == ["db"] && clients.workers == ["db"])
    world.fail("web")
    #expect(hooks.workers == ["db", "web"] && hooks.events.count == clients.events.count)
    #expect(hooks.events.allSatisfy { !$0.text.isEmpty && !$0.kind.isEmpty && !$0.time.isEmpty })
    chronicle.didSetPolicy(world.engine.policy, at: world.now)
    #expect(hooks.events.last?.kind == "policy" && clients.events.last?.kind == "policy")
    chronicle.observe(as: .hooks, nil)
    let before = hooks.events.count
    world.fail("web")
    #expect(hooks.events.count == before && clients.events.count > before)
  }

  @Test func `After a save, the files have everything until then: events and counts`() throws {
    let chronicle = try make()
    let world = World(chronicle, "web")
    world.fail("web")
    let isDone = Mutex(false)
    let journal = chronicle.save(at: world.now) { isDone.withLock { $0 = true } }
    #expect(try eventually { isDone.withLock { $0 } })
    #expect(journal.directory == "\(scratch.path)/journal" && journal.run != nil)
    #expect(journal.reports == "\(scratch.path)/reports" && journal.at == world.now.nanoseconds)
    var player = JournalPlayer()
    player.play(try JournalDirectory(path: "\(scratch.path)/journal").segments()) { _, _ in }
    #expect(player.problems.isEmpty && player.engine.isSame(as: world.engine))
    let today = try DayStore(directory: journal.reports).load(JournalWriter.wall().day)
    // Midnight may have passed.
    let day = try today ?? DayStore(directory: journal.reports).load(JournalWriter.wall().day - 1)
    #expect(day?.tallies[WorkerID("web")]?.failedLaunches == 1)
  }

  @Test func `Without a journal the days are counted, and events can be followed`() throws {
    let chronicle = try make(enabled: false)
    let world = World(chronicle, "web")
    let heard = Heard()
    chronicle.observe(as: .clients) { heard.events.append($1) }
    world.fail("web")
    let journal = chronicle.save(at: world.now) {}
    #expect(journal.directory == nil && journal.run == nil && !heard.events.isEmpty)
    #expect(chronicle.close(at: world.now, within: .seconds(60)))
    #expect(!fileExists("\(scratch.path)/journal"))
    #expect(try listDirectory("\(scratch.path)/reports").contains { $0.hasSuffix(".json") })
  }

  @Test func `The configuration may name the journal's directory`() throws {
    let chronicle = try make(path: "\(scratch.path)/elsewhere")
    let world = World(chronicle, "web")
    #expect(chronicle.close(at: world.now, within: .seconds(60)))
    #expect(try !listDirectory("\(scratch.path)/elsewhere").isEmpty)
  }

  @Test func `The daemon's end waits for a hung disk, but not without limit`() throws {
    let chronicle = try make()
    let world = World(chronicle, "web")
    let gate = ThreadGate()
    defer { gate.open() }
    queue.submit { gate.pass() }
    world.fail("web")
    #expect(!chronicle.close(at: world.now, within: .milliseconds(10)))
    gate.open()
    #expect(chronicle.close(at: world.now, within: .seconds(60)))
  }
}
