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
    #expect(world.drainEvents().isEmpty)
    counts.answer(2, at: 1)
    counts.answer(0)
    #expect(world.drainEvents() == [.fileLocks(api.id, held: 2), .fileLocks(web.id, held: 0)])
  }

  @Test func `A worker without a process has no file locks, and the answer comes at once`() throws {
    let worker = try world.add("web", .terminated)
    check.checkSafePoint(worker.id)
    check.checkSafePoint(WorkerID("unknown"))
    #expect(
      world.drainEvents() == [
        .fileLocks(worker.id, held: 0), .fileLocks(WorkerID("unknown"), held: 0),
      ])
    #expect(counts.count == 0)
  }

  @Test func `The outcome of a check is dropped if the run has ended meanwhile`() throws {
    let worker = try world.add()
    check.checkSafePoint(worker.id)
    check.checkSafePoint(worker.id)
    world.end(worker)
    counts.answer(1)
    try world.begin(worker)
    counts.answer(1)
    #expect(world.drainEvents().isEmpty)
  }
}
