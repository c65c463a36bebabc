import Lifecycle
import Policy
import Testing

@testable import Daemon

@Suite("The end of all workers") struct OrderlyStopTests {
  /// Workers that end when a test says so.
  private final class World: OrderlyStopHost {
    var alive: [WorkerID] = []
    var needed: [WorkerID: [WorkerID]] = [:]
    var external: Set<WorkerID> = []
    private(set) var stopped: [String] = []
    private var answers: [WorkerID: (Answer) -> Void] = [:]
    let timers = FakeTimers()
    private(set) var lines: [String] = []
    private(set) lazy var stop = OrderlyStop(self, timers: timers)

    func needs(of id: WorkerID) -> [WorkerID] { needed[id] ?? [] }
    func isExternal(_ id: WorkerID) -> Bool { external.contains(id) }
    func stop(_ id: WorkerID, then answer: @escaping (Answer) -> Void) {
      stopped.append(id.name)
      answers[id] = answer
    }

    func log(_ priority: DaemonLog.Priority, _ text: String) { lines.append(text) }

    func add(_ name: String, needs others: String...) {
      alive.append(WorkerID(name))
      needed[WorkerID(name)] = others.map { WorkerID($0) }
    }

    func end(_ name: String) {
      alive.removeAll { $0.name == name }
      answers[WorkerID(name)]?(Answer(.done, "it has ended"))
      stop.advance()
    }

    func refuse(_ name: String, _ code: Answer.Code = .failed) {
      answers[WorkerID(name)]?(Answer(code, "\(name) hangs"))
    }
  }

  private let world = World()

  @Test("A worker is stopped when all workers that depend on it have ended")
  func order() {
    world.add("db")
    world.add("api", needs: "db")
    world.add("web", needs: "api", "db")
    world.add("cron")
    world.stop.advance()
    #expect(world.stopped == ["cron", "web"])
    world.end("web")
    #expect(world.stopped == ["cron", "web", "api"])
    world.end("api")
    #expect(world.stopped == ["cron", "web", "api", "db"])
  }

  @Test("Each worker is asked to stop once")
  func once() {
    world.add("web")
    for _ in 0..<3 { world.stop.advance() }
    #expect(world.stopped == ["web"])
  }

  @Test("A worker that can't be ended doesn't delay the stop of the others")
  func unstoppable() {
    world.add("db")
    world.add("web", needs: "db")
    world.stop.advance()
    world.refuse("web")
    #expect(world.stopped == ["web", "db"])
  }

  @Test(
    "A worker whose stop failed or was replaced is asked again after pauses that double up to 30 s",
    arguments: [Answer.Code.failed, .refused])
  func again(code: Answer.Code) {
    world.add("web")
    world.stop.advance()
    for (count, pause) in [1, 2, 4, 8, 16, 30, 30].enumerated() {
      world.refuse("web", code)
      #expect(world.timers.pending == [.seconds(pause)])
      world.stop.advance()
      #expect(world.stopped.count == count + 1, "not before the pause is over")
      world.timers.advance(by: .seconds(pause))
      #expect(world.stopped.count == count + 2)
    }
    #expect(world.lines.first == "web hangs; it is asked to stop again in 1 s")
    world.end("web")
    #expect(world.timers.pending.isEmpty)
  }

  @Test("A worker that ends during the pause after a failed stop isn't asked again")
  func endsMeanwhile() {
    world.add("web")
    world.stop.advance()
    world.refuse("web")
    world.alive = []
    world.timers.advance(by: .seconds(60))
    #expect(world.stopped == ["web"])
  }

  @Test("External workers are left running when all workers are stopped")
  func external() {
    world.add("theirs")
    world.add("ours")
    world.external = [WorkerID("theirs")]
    world.stop.advance()
    #expect(world.stopped == ["ours"])
  }
}
