import Lifecycle
import Policy
import Testing

@Suite("The rung that purges")
struct PurgeTests {
  private func world() -> World {
    var policy = LifecyclePolicy()
    policy.background.suspendAfter = nil
    policy.hibernate.enabled = false
    policy.foreground.max = nil
    var world = World(policy)
    for (worker, state) in [
      (mail, WorkerState.suspended), (maps, .background), (web, .foreground),
    ] {
      world.add(worker, size: .megabytes(20), in: state)
    }
    return world
  }

  @Test("Purgeable memory doesn't count in the footprint that hibernation compares with its limits")
  func sizes() {
    var world = World(LifecyclePolicy())
    world.add(mail, size: .megabytes(20), in: .suspended)
    #expect(world.verdict(mail)?.contains("max_footprint") == true)
    world.obey(world.send(.purgeableOffered(mail, .megabytes(5))))
    #expect(world.verdict(mail)?.contains("max_footprint") != true)
    world.obey(world.ask(.hibernate, mail))
    #expect(world.state(mail) == .hibernated)
  }

  @Test func `Purgeable memory is taken before a worker is terminated, the biggest offer first`() {
    var world = world()
    world.send(.purgeableOffered(mail, .megabytes(3)))
    world.send(.purgeableOffered(web, .megabytes(9)))
    #expect(world.engine.snapshot(of: web)?.purgeable == .megabytes(9))
    #expect(world.read(available: 90).deeds == ["purge web"])
    #expect(world.send(.purged(web, freed: .megabytes(9))).deeds.isEmpty, "it settles first")
    #expect(world.engine.snapshot(of: web)?.footprint == .megabytes(11))
    world.pass(.milliseconds(500))
    #expect(world.read(available: 95).deeds == ["purge mail"])
    world.send(.purged(mail, freed: .megabytes(3)))
    world.pass(.milliseconds(500))
    #expect(world.read(available: 95).deeds == ["terminate mail"])
  }

  @Test("The ladder skips workers that offer nothing, and stops purging when memory is back")
  func skips() {
    var world = world()
    world.send(.purgeableOffered(maps, .megabytes(3)))
    world.send(.purgeableOffered(maps, .zero))
    world.send(.purgeableOffered(web, .megabytes(9)))
    world.send(.purgeableOffered(mail, .megabytes(2)))
    world.read(available: 90)
    world.send(.purged(web, freed: .megabytes(9)))
    world.pass(.milliseconds(500))
    #expect(world.read(available: 500).deeds.isEmpty)
  }

  @Test func `A purge that fails or has no outcome is followed by the ladder's next step`() {
    var world = world()
    world.send(.purgeableOffered(mail, .megabytes(3)))
    world.send(.purgeableOffered(web, .megabytes(9)))
    world.read(available: 90)
    world.send(.purgeFailed(web, "its memory can't be opened"))
    world.pass(.milliseconds(500))
    #expect(world.read(available: 90).deeds == ["purge mail"])
    #expect(world.pass(.seconds(10)).deeds == ["terminate mail"])
  }
}
