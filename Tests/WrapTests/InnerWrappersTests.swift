import DaemonFakes
import Glibc
import Linux
import TestSupport
import Testing

@testable import Wrap

@Suite("Wrappers that a sleeping program has started") struct InnerWrappersTests {
  private final class World {
    let watches = FakeLoop()
    let timers = FakeLoop()
    let child: SpawnedProcess
    var state = ProcessStat.State.sleeping
    private(set) var reasons: [String] = []
    private(set) lazy var inner = InnerWrappers(
      watches: watches, timers: timers, state: { [unowned self] _ in state })

    init() throws { child = try .forTest() }

    var stat: ProcessStat {
      get throws {
        var stat = try ProcessStat.read(child.pid)
        stat.state = state
        return stat
      }
    }

    func watch(seesStops: Bool) throws {
      inner.watch([try stat], seesStops: seesStops) { [unowned self] in reasons.append($0) }
    }

    deinit { child.endForTest() }
  }

  @Test func `The end of one wakes the program once`() throws {
    let world = try World()
    world.inner.programFallsAsleep([try world.stat])
    try world.watch(seesStops: false)
    #expect(try !world.watches.serveOnce())
    kill(world.child.pid, SIGKILL)
    #expect(try eventually { try world.watches.serveOnce() })
    #expect(world.reasons == ["the end of a wrapped child"])
    #expect(world.watches.active == 0)
  }

  @Test func `A stop wakes a program with a terminal, and no other`() throws {
    for seesStops in [true, false] {
      let world = try World()
      world.inner.programFallsAsleep([try world.stat])
      try world.watch(seesStops: seesStops)
      world.timers.advance(by: .seconds(60))
      #expect(world.reasons.isEmpty)
      world.state = .stopped
      world.timers.advance(by: .seconds(60))
      #expect(world.reasons == (seesStops ? ["the stop of a wrapped child"] : []))
    }
  }

  @Test("One that had ended or was stopped before the sleep doesn't wake the program")
  func known() throws {
    for state in [ProcessStat.State.stopped, .zombie] {
      let world = try World()
      world.state = state
      world.inner.programFallsAsleep([try world.stat])
      try world.watch(seesStops: true)
      world.timers.advance(by: .seconds(60))
      #expect(world.reasons.isEmpty && world.watches.active == 0)
    }
  }

  @Test func `Nothing is watched while the program runs`() throws {
    let world = try World()
    try world.watch(seesStops: true)
    #expect(world.watches.active == 1)
    world.inner.unwatch()
    world.state = .stopped
    world.timers.advance(by: .seconds(60))
    #expect(world.reasons.isEmpty && world.watches.active == 0)
  }
}
