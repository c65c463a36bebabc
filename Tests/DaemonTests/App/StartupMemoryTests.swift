import Lifecycle
import Testing

@testable import Daemon

@Suite struct `The memory that only the daemon's start needs` {
  private final class World {
    let timers = FakeTimers()
    var states: StartupMemory.States = [WorkerID("web"): .launching]
    var finishes = 0
    var releases = 0

    func begin() {
      StartupMemory.releaseAfterStart(timers) {
        self.states
      } finish: {
        self.finishes += 1
      } release: {
        self.releases += 1
      }
    }
  }

  @Test func `The memory of the start is released once, when no worker is being launched`() {
    let world = World()
    world.begin()
    world.timers.advance(by: .seconds(20))
    #expect(world.releases == 0)
    world.states = [WorkerID("web"): .background]
    world.timers.advance(by: .seconds(10))
    #expect(world.finishes == 1 && world.releases == 0, "what finishes it takes memory itself")
    world.timers.advance(by: .seconds(5))
    #expect(world.releases == 1)
    world.timers.advance(by: .seconds(3600))
    #expect(world.finishes == 1 && world.releases == 1)
    #expect(world.timers.pending == [])
  }

  @Test
  func
    `The memory of the start is released only after no worker has changed its state for a moment`()
  {
    let world = World()
    world.states = [WorkerID("web"): .background, WorkerID("db"): .background]
    world.begin()
    world.timers.advance(by: .seconds(4))
    world.states[WorkerID("web")] = .suspending
    world.timers.advance(by: .seconds(5))
    world.states[WorkerID("web")] = .suspended
    world.timers.advance(by: .seconds(5))
    #expect(world.releases == 0)
    world.timers.advance(by: .seconds(10))
    #expect(world.releases == 1)
  }

  @Test
  func `The memory of the start is released after a minute although a worker never becomes ready`()
  {
    let world = World()
    world.begin()
    world.timers.advance(by: .seconds(59))
    #expect(world.releases == 0)
    world.timers.advance(by: .seconds(1))
    #expect(world.releases == 1)
  }

  @Test
  func `The memory of the start is released after a minute although workers change all the time`() {
    let world = World()
    world.states = [WorkerID("web"): .background]
    world.begin()
    for second in 1...60 {
      world.states[WorkerID("web")] = second.isMultiple(of: 2) ? .background : .suspended
      world.timers.advance(by: .seconds(1))
    }
    #expect(world.releases == 1)
  }
}
