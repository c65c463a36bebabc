import Lifecycle
import Policy
import Testing

@Suite("Since when a worker sleeps, and what woke it last")
struct LastWakeTests {
  private func world(_ change: (inout LifecyclePolicy) -> Void = { _ in }) -> World {
    var world = World(change)
    world.add(web)
    world.now = world.now + .seconds(5)
    return world
  }

  @Test func `A worker sleeps since its suspension, also after it is hibernated`() {
    var world = world()
    world.bring(web, to: .background)
    #expect(world.engine.snapshot(of: web)?.asleepSince == nil)
    world.now = world.now + .seconds(1)
    world.obey(world.ask(.suspend, web))
    let suspended = world.now
    #expect(world.engine.snapshot(of: web)?.asleepSince == suspended)
    world.now = world.now + .seconds(60)
    world.obey(world.ask(.hibernate, web))
    let snapshot = world.engine.snapshot(of: web)
    #expect(snapshot?.state == .hibernated && snapshot?.asleepSince == suspended)
    #expect(snapshot?.lastWake == nil)
  }

  @Test("The cause of the last wake stays when the worker changes its state, until its run ends")
  func wake() {
    var world = world()
    world.bring(web, to: .hibernated)
    world.now = world.now + .seconds(60)
    world.obey(world.send(.wakeNeeded(web, "a connection on port 80")))
    let woken = world.now
    world.now = world.now + .seconds(60)
    world.obey(world.ask(.foreground, web))
    world.obey(world.ask(.background, web))
    let snapshot = world.engine.snapshot(of: web)
    #expect(snapshot?.cause == .requested(.background) && snapshot?.asleepSince == nil)
    #expect(snapshot?.lastWake?.at == woken)
    #expect(snapshot?.lastWake?.cause.sentence == "woken by a connection on port 80")
    world.obey(world.ask(.stop, web))
    world.obey(world.ask(.start, web))
    #expect(world.engine.snapshot(of: web)?.lastWake == nil)
  }

  @Test("Of a worker that an earlier daemon put to sleep it isn't known since when it sleeps")
  func adopted() {
    var world = World()
    world.now = world.now + .seconds(5)
    world.adopt(web, in: .suspended)
    #expect(world.engine.snapshot(of: web)?.asleepSince == nil)
  }
}
