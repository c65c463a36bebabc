import Lifecycle
import Policy
import Testing

@testable import Daemon

@Suite("What a manager wants of a worker that sleeps") struct ManagerWatchingTests {
  private let timers = FakeTimers()
  private let notes = EventNotes()
  private let workers = WorkerRegistry()
  private let driver: EngineDriver
  private let managers: ManagerWatching
  private let world = Seen()

  private final class Seen {
    var looks = 0
    var reason: String?
    var prioritized: [WorkerID] = []
  }

  init() {
    driver = .forTest(timers, notes)
    managers = ManagerWatching(driver: driver, workers: workers, timers: timers) { [world] in
      world.prioritized.append($0)
    }
  }

  private func sleeper(_ name: String = "web") -> WorkerUnit {
    let worker = WorkerUnit.forTest(name, isDeclared: false)
    workers[worker.id] = worker
    driver.send(.adopted(worker.id, worker.profile, .suspended))
    return worker
  }

  private func check() -> String? {
    world.looks += 1
    return world.reason
  }

  @Test("A manager's request is checked for ten times a second, and wakes its worker with priority")
  func wakes() {
    let worker = sleeper()
    managers.watchManager(of: worker, check)
    timers.advance(by: ManagerWatching.interval * 5)
    #expect(world.looks == 5 && !notes.events.contains("wakeNeeded"))
    world.reason = "SIGTERM to its process 100"
    timers.advance(by: ManagerWatching.interval)
    #expect(notes.events.last == "wakeNeeded" && world.prioritized == [worker.id])
    #expect(driver.state.state(of: worker.id) == .resuming)
    // A worker that is being woken isn't checked.
    timers.advance(by: ManagerWatching.interval * 3)
    #expect(world.looks == 6)
  }

  @Test func `One timer checks all sleeping adopted workers, and ends with the last watch`() {
    let runtimes = ["web", "db"].map { sleeper($0) }
    for worker in runtimes { managers.watchManager(of: worker, check) }
    #expect(timers.pending == [ManagerWatching.interval])
    for worker in runtimes { worker.managerWatch = nil }
    timers.advance(by: ManagerWatching.interval)
    #expect(timers.pending.isEmpty && world.looks == 0)
    managers.watchManager(of: runtimes[0], check)
    #expect(timers.pending.count == 1)
  }

  @Test(
    "An adopted worker whose process has ended isn't woken, and one without a watch needs no timer")
  func ended() throws {
    let worker = sleeper()
    managers.watchManager(of: worker, nil)
    #expect(timers.pending.isEmpty)
    managers.watchManager(of: worker, check)
    world.reason = "its process 100 has ended"
    let end = try WorkerEndWorld()
    worker.ending = end.ending
    end.ending.rootDidEnd()
    #expect(worker.hasExited)
    timers.advance(by: ManagerWatching.interval)
    #expect(world.looks == 0 && !notes.events.contains("wakeNeeded"))
  }
}
