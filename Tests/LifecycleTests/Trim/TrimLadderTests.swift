import Lifecycle
import Policy
import Testing

@Suite("The rung that trims")
struct TrimLadderTests {
  /// A host of 1,000 MB with three workers in the foreground.
  private func world(_ change: (inout LifecyclePolicy) -> Void = { _ in }) -> World {
    var policy = LifecyclePolicy()
    policy.foreground.max = nil
    policy.ladder.warning = [.trim]
    change(&policy)
    var world = World(policy)
    for (worker, size) in [(mail, 20), (maps, 90), (web, 52)] {
      world.add(worker, size: .megabytes(Int64(size)), in: .foreground)
      world.send(.footprint(worker, .megabytes(Int64(size))))
    }
    return world
  }

  /// Lets the freed memory show in a reading, while it is still short.
  private func next(_ world: inout World) -> [String] {
    world.pass(.milliseconds(500))
    return world.read(available: 120).deeds
  }

  @Test("One worker at a time is trimmed, the largest gain first, and again after a pause")
  func order() {
    var world = world()
    #expect(world.read(available: 120).deeds == ["trim maps"])
    #expect(next(&world).isEmpty, "the first trim is under way")
    world.send(.trimmed(maps, world.trim(maps)))
    #expect(next(&world) == ["trim web"])
    let failure = Event.trimFailed(web, "there is no swap", permanent: false)
    #expect(world.send(failure).deeds == ["trim mail"], "nothing was freed that could show")
    world.send(.trimmed(mail, world.trim(mail)))
    #expect(next(&world).isEmpty)
    world.send(.swapped(maps, .zero))
    world.send(.footprint(maps, .megabytes(90)))
    #expect(world.pass(.seconds(50)).deeds.isEmpty)
    #expect(world.pass(.seconds(12)).deeds == ["trim web"], "the pause after its failure is over")
    world.send(.trimmed(web, world.trim(web)))
    #expect(world.pass(.seconds(50)).deeds.isEmpty)
    #expect(world.pass(.seconds(20)).deeds == ["trim maps"], "its pause is twice as long")
  }

  @Test("Workers asleep are hibernated first; running ones are trimmed before anything is lost")
  func runningAfterIdle() throws {
    let standard = try shipped("standard")
    for level in [PressureLevel.warning, .urgent, .critical] {
      #expect(standard.ladder.steps(at: level).prefix(3) == [.hibernate, .trim, .purge])
    }
    var world = world {
      $0.hibernate.maxFootprint = nil
      $0.ladder = standard.ladder
    }
    world.obey(world.ask(.suspend, mail))
    world.send(.purgeableOffered(maps, .megabytes(5)))
    #expect(world.obey(world.read(available: 120)).deeds == ["hibernate mail"])
    var deeds: [String] = []
    for _ in 0..<3 {
      world.pass(.milliseconds(500))
      deeds += world.obey(world.read(available: 120)).deeds
    }
    #expect(deeds == ["trim maps", "trim web", "purge maps"])
  }

  @Test("Nothing is trimmed because of stalls alone, or when a later rung may end a worker now")
  func notNow() {
    var stalled = world { $0.ladder.warning = [.trim, .hibernate] }
    #expect(stalled.read(available: 600, some: 90).deeds.isEmpty)
    #expect(stalled.pass(.seconds(30)).deeds.isEmpty)
    #expect(stalled.read(available: 120, some: 90).deeds == ["trim maps"])
    // It is hibernated instead of ended.
    var short = world { $0.ladder.critical = [.trim, .terminate(.foreground)] }
    #expect(short.read(available: 20).deeds == ["suspend maps"])
    var kept = world { $0.ladder.critical = [.trim, .terminate(.suspended)] }
    #expect(kept.read(available: 20).deeds == ["trim maps"], "no rung has a worker to end")
  }

  @Test("A worker with too small a gain, without the mechanism, or asleep isn't trimmed")
  func skipped() {
    var world = world {
      $0.trim.minGain = .megabytes(60)
      $0.background.suspendAfter = nil
    }
    world.obey(world.ask(.suspend, maps))
    #expect(world.read(available: 120).deeds.isEmpty)
    var off = self.world { $0.trim.mechanism = .off }
    #expect(off.read(available: 120).deeds.isEmpty)
  }

  @Test("Shadow mode reports each trim of the ladder once")
  func shadow() {
    var world = world { $0.mode = .shadow }
    var reports: [String] = []
    for _ in 0..<5 {
      reports += world.read(available: 30).brief + world.pass(.milliseconds(500)).brief
    }
    let trims = reports.filter { $0.hasPrefix("wouldHave") }
    #expect(trims == ["wouldHave maps"], "its 90 MB would be enough")
  }

  @Test("A worker whose memory is in swap isn't terminated: its end would free nothing")
  func victims() {
    var world = world {
      $0.hibernate.enabled = false
      $0.terminate.order = [.footprint]
    }
    world.send(.swapped(maps, .megabytes(90)))
    world.send(.footprint(maps, .megabytes(90)))
    world.obey(world.read(available: 40))
    var victims: [String] = []
    for _ in 0..<20 {
      world.pass(.milliseconds(500))
      victims += world.obey(world.read(available: 40 + Int64(victims.count) * 30)).victims
    }
    #expect(!victims.contains("maps") && world.state(maps) == .foreground)
  }

  @Test("An engine that examines every worker again decides the same")
  func reviewed() {
    var world = world { $0.trim.after = .seconds(100) }
    for step in 0..<400 {
      world.live(.seconds(7))
      if step % 3 == 0 { world.obey(world.read(available: step % 2 == 0 ? 120 : 500)) }
      for (number, worker) in [mail, maps, web].enumerated() where (step + number) % 5 == 0 {
        let size = world.size(worker)
        world.obey(world.send(.swapped(worker, ByteCount(size.bytes / Int64(1 + step % 9)))))
        world.obey(world.send(.footprint(worker, size)))
      }
      world.obey(world.send(.deadline))
      var again = world.engine.reviewed()
      #expect(again.handle(.deadline, at: world.now).isEmpty)
      #expect(again.nextDeadline == world.engine.nextDeadline)
      #expect(again == world.engine)
    }
  }
}
