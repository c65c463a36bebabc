import Glibc
import Lifecycle
import Testing

@testable import Daemon

@Suite("The check for a safe point") struct SafePointCheckTests {
  private let world = SenseWorld()
  private let counts = Pending<Int>()
  private let check: SafePointCheck

  init() {
    check = SafePointCheck(driver: world.driver, workers: world.workers) { [counts] _, _, then in
      counts.add(then)
    }
  }

  @Test("The engine gets the number of file locks, from each of two checks by itself")
  func answered() throws {
    let (web, api) = (try world.add("web"), try world.add("api"))
    check.checkSafePoint(web.id)
    check.checkSafePoint(api.id)
    #expect(world.takeEvents().isEmpty)
    counts.answer(2, at: 1)
    counts.answer(0)
    #expect(world.takeEvents() == [.fileLocks(api.id, held: 2), .fileLocks(web.id, held: 0)])
  }

  @Test("A worker without a process holds no locks, and the answer comes at once")
  func noProcess() throws {
    let runtime = try world.add("web", .terminated)
    check.checkSafePoint(runtime.id)
    check.checkSafePoint(WorkerID("unknown"))
    #expect(
      world.takeEvents() == [
        .fileLocks(runtime.id, held: 0), .fileLocks(WorkerID("unknown"), held: 0),
      ])
    #expect(counts.count == 0)
  }

  @Test("The outcome of a check is dropped if the run has ended meanwhile")
  func ended() throws {
    let runtime = try world.add()
    check.checkSafePoint(runtime.id)
    check.checkSafePoint(runtime.id)
    world.end(runtime)
    counts.answer(1)
    try world.begin(runtime)
    counts.answer(1)
    #expect(world.takeEvents().isEmpty)
  }
}
