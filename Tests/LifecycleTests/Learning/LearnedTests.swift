import Policy
import Testing

@testable import Lifecycle

@Suite struct `What is learned` {
  private static func experienced() -> Engine {
    var engine = Engine(policy: LifecyclePolicy())
    let web = WorkerID("web")
    let profile = WorkerProfile(policy: LifecyclePolicy(), announcesReadiness: true)
    func at(_ seconds: Int64) -> Instant { .zero + .seconds(seconds) }
    _ = engine.handle(.added(web, profile), at: at(0))
    _ = engine.handle(.request(Request(id: 1, verb: .start, worker: web)), at: at(1))
    _ = engine.handle(.launched(web), at: at(1))
    _ = engine.handle(.ready(web), at: at(4))
    _ = engine.handle(.exited(web, .exited(7)), at: at(100))
    return engine
  }

  @Test func `What the engine learned survives the engine, and returns with the worker's name`()
    throws
  {
    let learned = Self.experienced().learned
    var next = Engine(policy: LifecyclePolicy(), remembering: learned)
    #expect(next.learned == learned)
    _ = next.handle(
      .added("other", WorkerProfile(policy: LifecyclePolicy())), at: .zero + .seconds(200))
    #expect(next.snapshot(of: "other")?.launchCost == nil)
    _ = next.handle(
      .added("web", WorkerProfile(policy: LifecyclePolicy())), at: .zero + .seconds(200))
    let snapshot = try #require(next.snapshot(of: "web"))
    #expect(snapshot.launchCost == .seconds(3))
    #expect(snapshot.lastExit == .exited(7))
    #expect(next.learned == learned)
  }

  @Test func `What the engine learned moves with the clock, there and back`() {
    let learned = Self.experienced().learned
    let moved = learned.moved(by: .seconds(-1000))
    #expect(moved != learned)
    #expect(moved.moved(by: .seconds(1000)) == learned)
  }

  @Test func `What the engine learned is limited to the workers that were started last`() {
    var engine = Engine(policy: LifecyclePolicy())
    for number in 0..<10 {
      let name = WorkerID("w\(number)")
      let now = Instant.zero + .seconds(Int64(number + 1))
      _ = engine.handle(.added(name, WorkerProfile(policy: LifecyclePolicy())), at: now)
      _ = engine.handle(.request(Request(id: 1, verb: .start, worker: name)), at: now)
      _ = engine.handle(.launched(name), at: now)
    }
    let names = engine.learned.limited(to: 3).workers.keys.map(\.name).sorted()
    #expect(names == ["w7", "w8", "w9"])
  }

  /// A checkpoint contains the remembered workers, so that a replay leads to the same engine.
  @Test
  func `What the engine learned about workers that aren't declared yet is part of the engine`() {
    let learned = Self.experienced().learned
    let next = Engine(policy: LifecyclePolicy(), remembering: learned)
    #expect(next != Engine(policy: LifecyclePolicy()))
  }
}

extension WorkerID: ExpressibleByStringLiteral {
  public init(stringLiteral value: String) { self.init(value) }
}
