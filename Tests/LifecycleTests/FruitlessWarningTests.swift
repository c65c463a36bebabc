import Lifecycle
import Policy
import Testing

@Suite("Warnings that bring nothing")
struct FruitlessWarningTests {
  private func world() -> World {
    var policy = LifecyclePolicy()
    policy.memory = .device(.megabytes(100))
    policy.pressure = PressureRules(
      warning: PressureCondition(availableBelow: .percent(60)),
      urgent: PressureCondition(availableBelow: .percent(40)),
      critical: PressureCondition(availableBelow: .percent(1)))
    policy.pressure.warnOncePer = .level
    policy.ladder = Ladder(warning: [.warn], urgent: [.warn], critical: [.terminate(.background)])
    var world = World(policy)
    world.add(web, size: .megabytes(8), canShed: true)
    world.bring(web, to: .foreground)
    return world
  }

  private func warnings(_ directives: [Directive]) -> Int {
    directives.count { if case .shed(_, .memoryWarning, _) = $0 { true } else { false } }
  }

  private func answer(_ world: inout World, _ before: ByteCount, _ after: ByteCount) {
    world.send(.shedAnswered(web))
    world.send(.shedFinished(web, before: before, after: after))
  }

  /// The second level comes; how many warnings that brings.
  private func warningsAtUrgent(yield: ByteCount, answers: Bool = true) -> Int {
    var world = world()
    #expect(warnings(world.send(.footprint(web, .megabytes(45)))) == 1)
    if answers {
      answer(&world, .megabytes(45), .megabytes(45) - yield)
    } else {
      world.pass(.seconds(5))
      world.send(.shedFinished(web, before: .megabytes(45), after: .megabytes(45)))
    }
    return warnings(world.send(.footprint(web, .megabytes(70)))) + warnings(world.pass(.seconds(5)))
  }

  @Test("who answered and gave nothing back isn't warned again at the next level")
  func again() {
    #expect(warningsAtUrgent(yield: .kilobytes(63)) == 0)
    #expect(warningsAtUrgent(yield: .kilobytes(64)) == 1)
    #expect(warningsAtUrgent(yield: .zero, answers: false) == 1)
  }

  @Test("they are told by explain, until a request brings something")
  func told() {
    var world = world()
    world.send(.footprint(web, .megabytes(20)))
    for _ in 0..<2 {
      world.ask(.warn, web)
      answer(&world, .megabytes(20), .megabytes(20))
    }
    #expect(world.engine.explanation(of: web)?.fruitless?.count == 2)
    let sentence = world.engine.explanation(of: web)?.fruitless?.sentence(
      at: world.now + .seconds(40))
    #expect(
      sentence == "answered 2 memory warnings and gave nothing back, the last 40 s ago; "
        + "while the pressure lasts it isn't warned a second time")
    #expect(world.engine.explanation(of: web)?.lastShed?.kind == .memoryWarning)
    world.ask(.warn, web)
    answer(&world, .megabytes(20), .megabytes(12))
    #expect(world.engine.explanation(of: web)?.fruitless == nil)
  }

  @Test("a run that ends takes them along")
  func run() {
    var world = world()
    world.send(.footprint(web, .megabytes(20)))
    world.ask(.warn, web)
    answer(&world, .megabytes(20), .megabytes(20))
    world.send(.exited(web, .exited(0)))
    world.bring(web, to: .foreground)
    #expect(world.engine.explanation(of: web)?.fruitless == nil)
  }
}
