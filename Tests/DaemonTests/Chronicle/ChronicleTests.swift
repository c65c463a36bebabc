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
  private let lines = LoggedLines()

  init() throws {
    scratch = try Scratch(["reports/.keep": ""])
  }

  private func make(enabled: Bool = true, path: String? = nil) throws -> Chronicle {
    try Chronicle(
      JournalConfiguration(enabled: enabled, path: path), version: "1",
      directory: "\(scratch.path)/journal", reports: "\(scratch.path)/reports", queue: queue,
      log: lines.log)
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

  @Test func `A follower gets the events of all workers, or of its worker alone`() throws {
    let chronicle = try make()
    let world = World(chronicle, "web", "db")
    let (all, web) = (Heard(), Heard())
    let ends = [
      chronicle.follow(worker: nil) {
        all.events.append($0)
        return true
      },
      chronicle.follow(worker: "web") {
        web.events.append($0)
        return true
      },
    ]
    world.fail("db")
    #expect(all.workers == ["db"] && web.events.isEmpty)
    world.fail("web")
    #expect(all.workers == ["db", "web"] && web.workers == ["web"])
    #expect(web.events.allSatisfy { !$0.text.isEmpty && !$0.kind.isEmpty && !$0.time.isEmpty })
    chronicle.didSetPolicy(world.engine.policy, at: world.now)
    #expect(all.events.last?.kind == "policy" && web.events.last?.kind != "policy")
    for end in ends { end() }
    let before = (all.events.count, web.events.count)
    world.fail("web")
    #expect(before == (all.events.count, web.events.count))
  }

  @Test("A client that can't be reached any more gets no further event, the others get each one")
  func left() throws {
    let chronicle = try make()
    let world = World(chronicle, "web")
    let (leaving, staying) = (Heard(), Heard())
    var end: () -> Void = {}
    end = chronicle.follow(worker: nil) {
      leaving.events.append($0)
      // The client's connection closes while this event is sent.
      end()
      return false
    }
    let other = chronicle.follow(worker: nil) {
      staying.events.append($0)
      return true
    }
    world.fail("web")
    world.fail("web")
    #expect(leaving.events.count == 1 && staying.events.count > 1)
    other()
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
    let end = chronicle.follow(worker: nil) {
      heard.events.append($0)
      return true
    }
    world.fail("web")
    let journal = chronicle.save(at: world.now) {}
    #expect(journal.directory == nil && journal.run == nil && !heard.events.isEmpty)
    #expect(chronicle.close(at: world.now, within: .seconds(60)))
    #expect(!fileExists("\(scratch.path)/journal"))
    #expect(try listDirectory("\(scratch.path)/reports").contains { $0.hasSuffix(".json") })
    end()
  }

  @Test func `The configuration may name the journal's directory`() throws {
    let chronicle = try make(path: "\(scratch.path)/elsewhere")
    let world = World(chronicle, "web")
    #expect(chronicle.close(at: world.now, within: .seconds(60)))
    #expect(try !listDirectory("\(scratch.path)/elsewhere").isEmpty)
  }

  @Test("The daemon's end waits for a disk that doesn't answer, but not without limit")
  func hungDisk() throws {
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
