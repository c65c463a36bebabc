import Lifecycle
import Policy
import Testing

private let daily = WorkerID("daily")
private let often = WorkerID("often")

@Suite("Regret")
struct RegretTests {
  /// A world in which `often` is used every minute, and `daily` once.
  private func world(order: [TerminationRules.Criterion] = [.regret]) -> World {
    var policy = LifecyclePolicy()
    policy.background.suspendAfter = nil
    policy.hibernate.after = nil
    policy.terminate.order = order
    policy.hibernate.order = order
    var world = World(policy)
    for worker in [daily, often] { world.add(worker, size: .megabytes(10)) }
    for _ in 0..<5 {
      world.obey(world.ask(world.state(often) == .terminated ? .start : .foreground, often))
      world.pass(.seconds(30))
      world.obey(world.ask(.background, often))
      world.pass(.seconds(30))
    }
    world.bring(daily, to: .suspended)
    world.obey(world.ask(.suspend, often))
    return world
  }

  private func terms(_ world: World, _ worker: WorkerID) -> RegretTerms? {
    world.engine.ranking(at: world.now).termination.first { $0.worker == worker }?.regret
  }

  @Test("The engine learns the interval between uses, and from it the chance of use soon")
  func chance() throws {
    var world = world()
    let regret = try #require(terms(world, often))
    #expect(regret.meanInterval == .seconds(60))
    #expect(regret.chance == 600.0 / 660)
    #expect(terms(world, daily)?.meanInterval == nil)
    world.pass(.seconds(3600))
    let later = try #require(terms(world, often))
    #expect(
      later.chance == 600.0 / (600 + 2048), "unused for longer than before: its uses count as rarer"
    )
  }

  @Test("Regret is chance × cost / bytes; the worker with the least regret is terminated first")
  func order() {
    var world = world()
    #expect(world.engine.terminationOrder() == [daily, often])
    world.send(.footprint(often, .megabytes(500)))
    #expect(world.engine.terminationOrder() == [often, daily])
  }

  @Test func `Regret counts the cost of a relaunch if it is known`() {
    var world = World(world().engine.policy)
    for (name, seconds) in [("slow", Int64(9)), ("quick", 1)] {
      world.add(WorkerID(name), announcesReadiness: true)
      world.ask(.start, WorkerID(name))
      world.send(.launched(WorkerID(name)))
      world.pass(.seconds(seconds))
      world.obey(world.send(.ready(WorkerID(name))))
      world.obey(world.ask(.background, WorkerID(name)))
    }
    #expect(world.engine.terminationOrder().map(\.name) == ["quick", "slow"])
    #expect(terms(world, WorkerID("quick"))?.isCostMeasured == true)
  }

  @Test func `Regret and band stay the same until the reported instant, and change at it`() throws {
    var world = world(order: [.band, .regret])
    world.live(.seconds(3600))
    world.obey(world.ask(.wake, often))
    for _ in 0..<8 {
      let entry = try #require(
        world.engine.ranking(at: world.now).termination.first { $0.worker == often })
      let wait = try #require(entry.changesIn)
      world.pass(wait - .nanoseconds(1))
      #expect(terms(world, often)?.chance == entry.regret.chance)
      world.pass(.nanoseconds(1))
      #expect(try #require(terms(world, often)).chance < entry.regret.chance)
    }
  }

  @Test func `Regret orders hibernation by the cost of a resume`() {
    var world = world()
    #expect(world.engine.ranking().hibernation.map(\.worker) == [daily, often])
    #expect(world.read(available: 120).deeds == ["hibernate daily"])
  }

  @Test("Resume costs are learned by size, and serve as an estimate for workers without their own")
  func learned() throws {
    var world = world()
    let before = try #require(world.engine.ranking().hibernation.last?.regret)
    #expect(
      !before.isCostMeasured && before.cost > .milliseconds(14) && before.cost < .milliseconds(16))
    world.obey(world.ask(.hibernate, daily))
    world.ask(.wake, daily)
    world.send(.resumed(daily, .milliseconds(105)))
    let after = try #require(
      world.engine.ranking().hibernation.first { $0.worker == often }?.regret)
    #expect(after.cost > .milliseconds(104) && after.cost < .milliseconds(106))
  }
}
