import Lifecycle
import Policy
import Testing

@Suite("A heartbeat")
struct HeartbeatTests {
  private func world(
    hibernated: Bool, _ change: (inout LifecyclePolicy) -> Void = { _ in }
  ) -> World {
    var policy = LifecyclePolicy()
    policy.background.heartbeat = HeartbeatRules(
      every: .seconds(600), lasting: .seconds(5), whileHibernated: hibernated)
    policy.hibernate.after = hibernated ? .seconds(30) : nil
    change(&policy)
    var world = World(policy)
    world.add(web, in: .background)
    world.obey(world.pass(.seconds(10)))
    #expect(world.state(web) == .suspended)
    return world
  }

  @Test(
    "A heartbeat lets a suspended worker run for a moment, and suspends it again without a grace")
  func suspended() {
    var world = world(hibernated: false)
    #expect(world.pass(.seconds(599)).deeds.isEmpty)
    let beat = world.obey(world.pass(.seconds(1)))
    #expect(
      beat.brief == [
        "web: suspended → resuming", "resume web", "web: resuming → background",
      ])
    #expect(world.engine.snapshot(of: web)?.cause == .heartbeat)
    world.obey(world.pass(.milliseconds(4999)))
    #expect(world.state(web) == .background)
    world.obey(world.pass(.milliseconds(1)))
    #expect(world.state(web) == .suspended)
    world.obey(world.pass(.seconds(600)))
    #expect(world.state(web) == .background, "the next heartbeat")
  }

  @Test func `A heartbeat doesn't count as a use`() {
    var world = world(hibernated: false)
    let before = world.engine.snapshot(of: web)?.lastUsed
    world.obey(world.pass(.seconds(600)))
    #expect(world.engine.snapshot(of: web)?.lastUsed == before)
  }

  @Test func `A heartbeat becomes a use when a request for the worker comes meanwhile`() {
    var world = world(hibernated: false)
    world.obey(world.pass(.seconds(600)))
    world.ask(.wake, web)
    world.obey(world.pass(.seconds(9)))
    #expect(world.state(web) == .background, "it gets its grace")
    #expect(world.engine.snapshot(of: web)?.lastUsed == .zero + .seconds(610))
  }

  @Test func `A heartbeat resumes a hibernated worker only if the policy says so`() {
    var world = world(hibernated: true)
    world.obey(world.pass(.seconds(30)))
    #expect(world.state(web) == .hibernated)
    world.obey(world.pass(.seconds(570)))
    #expect(world.state(web) == .background)
    world.obey(world.pass(.seconds(5)))
    world.obey(world.pass(.seconds(45)))
    #expect(world.state(web) == .hibernated, "back after the cool-down, not after hibernate.after")
  }

  @Test func `A heartbeat is left out while memory is short`() {
    var world = world(hibernated: false) { $0.hibernate.enabled = false }
    world.read(available: 120)
    world.obey(world.pass(.seconds(600)))
    #expect(world.state(web) == .suspended)
    world.read(available: 900)
    world.obey(world.pass(.seconds(599)))
    #expect(world.state(web) == .suspended)
    world.obey(world.pass(.seconds(1)))
    #expect(world.state(web) == .background)
  }
}
