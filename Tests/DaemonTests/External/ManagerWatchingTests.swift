import Testing

@testable import Daemon

@Suite("What a manager wants of a worker that sleeps") struct ManagerWatchingTests {
  private let world: SleepWorld
  private let seen = Seen()
  private var timers: FakeLoop { world.timers }
  private var worker: WorkerUnit { world.worker }
  private let interval = WorkerSleeps.managerInterval

  private final class Seen {
    var looks = 0
    var reason: String?
  }

  init() throws {
    world = try SleepWorld(.suspended)
    world.workers[world.id] = world.worker
  }

  private func check() -> String? {
    seen.looks += 1
    return seen.reason
  }

  @Test func `A manager's request is noticed within 100 ms, and wakes its worker`() {
    world.sleeps.watchManager(of: worker, check)
    timers.advance(by: interval * 5)
    #expect(seen.looks == 5 && world.wakes == [])
    seen.reason = "SIGTERM to its process 100"
    timers.advance(by: interval)
    #expect(world.wakes == ["SIGTERM to its process 100"] && world.memory.prioritized == 1)
    #expect(world.driver.state.state(of: worker.id) == .resuming)
    // A worker that is being woken isn't checked.
    timers.advance(by: interval * 3)
    #expect(seen.looks == 6)
  }

  @Test func `One timer checks all sleeping adopted workers, and ends with the last watch`() {
    let other = WorkerUnit.forTest("db", isDeclared: false)
    world.workers[other.id] = other
    world.driver.send(.adopted(other.id, other.profile, .suspended))
    for each in [worker, other] { world.sleeps.watchManager(of: each, check) }
    #expect(timers.pending == [interval])
    for each in [worker, other] { each.managerWatch = nil }
    timers.advance(by: interval)
    #expect(timers.pending.isEmpty && seen.looks == 0)
    world.sleeps.watchManager(of: worker, check)
    #expect(timers.pending.count == 1)
  }

  @Test func `An adopted worker whose process has ended isn't woken for its manager`() throws {
    world.sleeps.watchManager(of: worker, nil)
    #expect(timers.pending.isEmpty)
    world.sleeps.watchManager(of: worker, check)
    seen.reason = "its process 100 has ended"
    let end = try WorkerEndWorld()
    worker.ending = end.ending
    end.ending.rootDidEnd()
    #expect(worker.hasExited)
    timers.advance(by: interval)
    #expect(seen.looks == 0 && world.wakes == [])
  }
}
