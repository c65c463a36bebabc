import Lifecycle
import Policy
import Testing

@Suite("Early wakes")
struct EarlyWakeTests {
  private func world(_ change: (inout LifecyclePolicy) -> Void = { _ in }) -> World {
    var policy = LifecyclePolicy()
    policy.hibernate.after = nil
    change(&policy)
    var world = World(policy)
    world.add(web, in: .background)
    return world
  }

  private func band(_ world: World) -> Int? {
    world.engine.snapshot(of: web, at: world.now)?.band
  }

  @Test(
    "A worker woken within seconds of its suspension moves up in band, and down again by halves")
  func woken() {
    var world = world()
    world.live(.seconds(10))
    #expect(band(world) == 0)
    world.pass(.seconds(9))
    world.obey(world.send(.wakeNeeded(web, "data")))
    #expect(band(world) == 40)
    let earlyWake = world.engine.snapshot(of: web, at: world.now)?.earlyWake
    #expect(earlyWake?.count == 1 && earlyWake?.bonus == 10)
    #expect(world.engine.explanation(of: web, at: world.now)?.earlyWake == earlyWake)
    world.live(.seconds(10))
    #expect(band(world) == 10)
    world.pass(.seconds(600))
    #expect(band(world) == 5)
    world.pass(.seconds(6000))
    #expect(band(world) == 0)
  }

  @Test func `A worker started within seconds of its termination for memory moves up in band`() {
    var world = world { $0.hibernate.enabled = false }
    world.live(.seconds(10))
    world.obey(world.read(available: 40))
    #expect(world.state(web) == .terminated)
    world.read(available: 900)
    world.pass(.seconds(8))
    world.bring(web, to: .background)
    #expect(band(world) == 40)
  }

  @Test func `A wake after a requested suspension, or after a longer sleep, isn't an early wake`() {
    var world = world()
    world.obey(world.ask(.suspend, web))
    world.obey(world.ask(.wake, web))
    #expect(band(world) == 30)
    world.live(.seconds(10))
    world.pass(.seconds(10))
    world.obey(world.ask(.wake, web))
    #expect(band(world) == 30)
  }

  @Test func `An early wake never lifts a worker above the bands of its state`() {
    var world = world { $0.earlyWake.bonus = 29 }
    for _ in 0..<3 {
      world.live(.seconds(10))
      world.obey(world.ask(.wake, web))
    }
    #expect(band(world) == 59)
  }
}
