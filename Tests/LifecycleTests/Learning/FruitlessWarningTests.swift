import Lifecycle
import Policy
import Testing

@Suite("Warnings that bring nothing")
struct FruitlessWarningTests {
  private func world() -> World {
    var policy = LifecyclePolicy()
    policy.memory = .device(.megabytes(100))
    policy.foreground.max = nil
    policy.pressure.warning = PressureCondition(availableBelow: .percent(60))
    policy.pressure.urgent = PressureCondition(availableBelow: .percent(40))
    policy.pressure.critical = PressureCondition(availableBelow: .percent(1))
    policy.pressure.warnOncePer = .level
    policy.ladder = Ladder(warning: [.warn], urgent: [.warn], critical: [.terminate(.background)])
    var world = World(policy)
    world.add(web, size: .megabytes(8), canShed: true, in: .foreground)
    return world
  }

  private func warned(_ directives: [Directive]) -> [WorkerID] {
    directives.compactMap {
      if case .shed(let worker, .memoryWarning, _) = $0 { worker } else { nil }
    }
  }

  private func answer(
    _ world: inout World, _ worker: WorkerID, _ before: ByteCount, _ after: ByteCount
  ) -> [Directive] {
    world.send(.shedAnswered(worker))
    return world.send(.shedFinished(worker, before: before, after: after))
  }

  /// Warns both workers at one level. Returns the workers that are warned in the first and in the
  /// second step of the next level.
  private func atTheNextLevel(
    yield: ByteCount, answers: Bool = true
  ) -> (first: [WorkerID], second: [WorkerID]) {
    var world = world()
    world.add(mail, size: .megabytes(8), canShed: true, in: .foreground)
    #expect(Set(warned(world.send(.footprint(web, .megabytes(40))))) == [web, mail])
    if answers {
      _ = answer(&world, web, .megabytes(40), .megabytes(40) - yield)
    } else {
      world.pass(.seconds(5))
      world.send(.shedFinished(web, before: .megabytes(40), after: .megabytes(40)))
    }
    _ = answer(&world, mail, .megabytes(8), .megabytes(7))
    world.pass(.seconds(2))
    let first = warned(world.send(.footprint(mail, .megabytes(30))))
    var later: [Directive] = []
    for worker in first { later += answer(&world, worker, .megabytes(30), .megabytes(29)) }
    return (first, warned(later + world.pass(.seconds(2))))
  }

  @Test func `A worker that answered and freed nothing is warned after all others`() {
    let fruitless = atTheNextLevel(yield: .kilobytes(63))
    #expect(fruitless.first == [mail])
    #expect(fruitless.second == [web])
    let silent = atTheNextLevel(yield: .zero, answers: false)
    #expect(Set(silent.first) == [web, mail])
    #expect(Set(atTheNextLevel(yield: .kilobytes(64)).first) == [web, mail])
  }

  @Test func `An explanation shows warnings that freed nothing, until a request frees something`() {
    var world = world()
    world.send(.footprint(web, .megabytes(20)))
    for _ in 0..<2 {
      world.ask(.warn, web)
      _ = answer(&world, web, .megabytes(20), .megabytes(20))
    }
    #expect(world.engine.explanation(of: web)?.fruitless?.count == 2)
    let sentence = world.engine.explanation(of: web)?.fruitless?.sentence(
      at: world.now + .seconds(40))
    #expect(
      sentence == "answered 2 memory warnings and freed nothing, the last 40 s ago; "
        + "warned after all other workers from now on")
    #expect(world.engine.explanation(of: web)?.lastShed?.kind == .memoryWarning)
    world.ask(.warn, web)
    _ = answer(&world, web, .megabytes(20), .megabytes(12))
    #expect(world.engine.explanation(of: web)?.fruitless == nil)
  }

  @Test func `Warnings that freed nothing are forgotten when the run ends`() {
    var world = world()
    world.send(.footprint(web, .megabytes(20)))
    world.ask(.warn, web)
    _ = answer(&world, web, .megabytes(20), .megabytes(20))
    world.send(.exited(web, .exited(0)))
    world.bring(web, to: .foreground)
    #expect(world.engine.explanation(of: web)?.fruitless == nil)
  }
}
