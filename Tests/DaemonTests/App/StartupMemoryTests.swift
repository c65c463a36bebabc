import Testing

@testable import Daemon

@Suite struct `The memory that only the daemon's start needs` {
  private final class World {
    let timers = FakeTimers()
    var isStarting = true
    var releases = 0

    func begin() {
      StartupMemory(timers, { self.isStarting }, release: { self.releases += 1 })
        .releaseAfterStart()
    }
  }

  @Test func `is released once, when no worker is being launched any more`() {
    let world = World()
    world.begin()
    world.timers.advance(by: .seconds(20))
    #expect(world.releases == 0)
    world.isStarting = false
    world.timers.advance(by: .seconds(5))
    #expect(world.releases == 1)
    world.timers.advance(by: .seconds(3600))
    #expect(world.releases == 1)
    #expect(world.timers.pending == [])
  }

  @Test func `is released after a minute although a worker never becomes ready`() {
    let world = World()
    world.begin()
    world.timers.advance(by: .seconds(59))
    #expect(world.releases == 0)
    world.timers.advance(by: .seconds(1))
    #expect(world.releases == 1)
  }
}
