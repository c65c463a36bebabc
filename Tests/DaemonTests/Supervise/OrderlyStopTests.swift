import Lifecycle
import Policy
import Testing

@testable import Daemon

@Suite("The end of all workers") struct OrderlyStopTests {
  private let ending: DaemonEndWorld

  init() throws { ending = try DaemonEndWorld() }

  @Test func `A worker is stopped when all workers that depend on it have ended`() throws {
    try ending.add("db")
    try ending.add("api", needs: ["db"])
    try ending.add("web", needs: ["api", "db"])
    try ending.add("cron")
    for _ in 0..<3 { ending.end.stopWorkers() }
    #expect(ending.asked == ["stop cron", "stop web"], "each once")
    ending.didStop("web")
    ending.end.stopWorkers()
    #expect(ending.asked == ["stop cron", "stop web", "stop api"])
    ending.didStop("api")
    ending.end.stopWorkers()
    #expect(ending.asked == ["stop cron", "stop web", "stop api", "stop db"])
  }

  @Test func `A worker that can't be ended doesn't delay the stop of the others`() throws {
    try ending.add("db")
    try ending.add("web", needs: ["db"])
    ending.end.stopWorkers()
    ending.outlivesKill("web")
    #expect(ending.asked == ["stop web", "stop db"])
  }

  @Test("A stop that another request has replaced delays the dependencies' stop, and is repeated")
  func replaced() throws {
    try ending.add("db")
    try ending.add("web", .hibernated, needs: ["db"])
    ending.end.stopWorkers()
    ending.world.driver.request(.wake, WorkerID("web")) { _ in }
    #expect(ending.asked == ["stop web", "wake web"])
    #expect(ending.hasLogged("it is asked to stop again in 1 s"))
    ending.world.timers.advance(by: .seconds(1))
    #expect(ending.asked == ["stop web", "wake web", "stop web"])
  }

  @Test("A worker whose stop failed is asked again after pauses that double up to 30 s")
  func again() throws {
    try ending.add("web", .hibernated)
    ending.end.stopWorkers()
    for (count, pause) in [1, 2, 4, 8, 16, 30, 30].enumerated() {
      ending.cantBeWoken("web")
      #expect(ending.world.timers.pending == [.seconds(pause)])
      ending.end.stopWorkers()
      #expect(ending.asked.count == count + 1, "not before the pause is over")
      ending.world.timers.advance(by: .seconds(pause))
      #expect(ending.asked.count == count + 2)
    }
    #expect(ending.lines.first?.hasSuffix("; it is asked to stop again in 1 s") == true)
    ending.didStop("web")
    #expect(ending.world.timers.pending.isEmpty)
  }

  @Test func `A worker that ends during the pause after a failed stop isn't asked again`() throws {
    try ending.add("web", .hibernated)
    ending.end.stopWorkers()
    ending.cantBeWoken("web")
    ending.didStop("web")
    ending.world.timers.advance(by: .seconds(60))
    #expect(ending.asked == ["stop web"])
  }

  @Test func `External workers are left running when all workers are stopped`() throws {
    try ending.addExternal("theirs", .background)
    try ending.add("ours")
    ending.end.stopWorkers()
    #expect(ending.asked == ["stop ours"])
  }
}
