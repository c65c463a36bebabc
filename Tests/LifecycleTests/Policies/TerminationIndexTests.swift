import Policy
import Simulation
import TestSupport
import Testing

@testable import Lifecycle

@Suite("The index of the order of termination")
struct TerminationIndexTests {
  @Test
  func `After any events the indices have the orders, numbers and victims that the records give`() {
    var random = TestRandom()
    for order in Self.orders {
      var world = Self.world(order, &random)
      for _ in 0..<400 {
        Self.change(&world, &random)
        // Several changes may come between two choices.
        if Bool.random(using: &random) { Self.check(&world.engine) }
      }
    }
  }

  @Test("The index is right in every history of a machine that does everything wrong")
  func simulated() throws {
    for seed in UInt64(1)...40 {
      var machine = SimulatedMachine(seed: seed)
      machine.observer = { observation in
        var engine = observation.after
        Self.check(&engine)
      }
      try machine.run()
    }
  }

  private static let orders: [[TerminationRules.Criterion]] = [
    [.band, .footprint], [.band, .recency, .footprint], [.recency], [.regret], [.band, .regret],
    [.relaunchCost, .footprint], [],
  ]

  private static func check(_ engine: inout Engine) {
    let now = engine.now
    engine.workers.rankForTermination(by: engine.policy.terminate, at: now)
    let order = engine.liveWorkers()
    let entries = engine.workers.termination.entries(at: now)
    #expect(entries == order.map { entry(engine.workers[$0], at: now) })
    for rung in Ladder.Rung.Victims.allCases {
      let group = Set(engine.workers.indices(rung.group))
      var walk = engine.workers.termination.victims(of: rung)
      var victims: [Int] = []
      while let first = walk.first {
        #expect(walk.popFirst() == first)
        victims.append(engine.workers.index(ofSlot: first))
      }
      #expect(victims == order.filter(group.contains))
    }
    checkSleepers(&engine)
  }

  private static func checkSleepers(_ engine: inout Engine) {
    engine.rankSleepers()
    let unexamined = engine.workers.sleepers.unexamined.members
    let expected = engine.sleepersFirst(
      unexamined.map { engine.workers.index(ofSlot: Int($0)) })
    // The loop empties this copy of the order.
    var order = engine.workers.sleepers.order
    var visited: [Int] = []
    while let slot = order.first {
      visited.append(engine.workers.index(ofSlot: slot))
      order.remove(slot)
    }
    #expect(visited == expected)
  }

  private static func entry(_ worker: WorkerRecord, at now: Instant) -> JetsamReport.Entry {
    JetsamReport.Entry(
      worker: worker.id, state: worker.state, band: worker.band(at: now),
      footprint: worker.footprint, peakFootprint: worker.run.peakFootprint,
      sinceUse: worker.state == .foreground ? .zero : now - worker.lastUsed,
      age: now - worker.run.launchAskedAt, protection: worker.protection)
  }

  private static func world(
    _ order: [TerminationRules.Criterion], _ random: inout TestRandom
  ) -> World {
    var policy = LifecyclePolicy()
    policy.foreground.max = 3
    policy.terminate.order = order
    policy.hibernate.order = order
    policy.hibernate.demoteAfter = .seconds(90)
    policy.earlyWake = EarlyWakeRules(within: .seconds(20), halvesEvery: .seconds(30))
    var world = World(policy)
    for number in 0..<12 { add(number, to: &world, &random) }
    return world
  }

  private static func add(_ number: Int, to world: inout World, _ random: inout TestRandom) {
    world.add(
      WorkerID("w\(number)"), size: .megabytes(.random(in: 0...4, using: &random)),
      importance: Int.random(in: 0...2, using: &random) * 50)
  }

  private static func change(_ world: inout World, _ random: inout TestRandom) {
    let number = Int.random(in: 0..<16, using: &random)
    let worker = WorkerID("w\(number)")
    switch Int.random(in: 0..<12, using: &random) {
    case 0..<3: world.live(.milliseconds(.random(in: 0...40_000, using: &random)))
    case 3: world.obey(world.send(.wakeNeeded(worker, "data")))
    case 4: world.send(.footprint(worker, .megabytes(.random(in: 0...4, using: &random))))
    case 5: world.send(.activity(worker))
    case 6: world.obey(world.read(available: .random(in: 1...300, using: &random)))
    case 7: world.send(.exited(worker, .exited(0)))
    case 8 where number > 11: add(number, to: &world, &random)
    case 8: world.send(.removed(WorkerID("w\(number + 4)")))
    default:
      let verbs: [Request.Verb] = [.start, .foreground, .background, .suspend, .hibernate, .wake]
      // Some of the operations end later, or never.
      let begun = world.ask(verbs[Int.random(in: 0..<6, using: &random)], worker)
      if Int.random(in: 0..<5, using: &random) > 0 { world.obey(begun) }
    }
  }
}
