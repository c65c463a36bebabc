import Policy
import Testing

@testable import Lifecycle

@Suite("Terminations that would be in vain")
struct UsefulTerminationTests {
  /// A world with suspended workers that can't be hibernated, on a host of 1,000 MB. `critical` is
  /// below 50 MB.
  private func world(
    _ sizes: [(WorkerID, Int64)], _ change: (inout LifecyclePolicy) -> Void = { _ in }
  ) -> World {
    var policy = LifecyclePolicy()
    policy.background.suspendAfter = nil
    policy.hibernate.enabled = false
    change(&policy)
    var world = World(policy)
    for (worker, size) in sizes { world.add(worker, size: .megabytes(size), in: .suspended) }
    return world
  }

  private func reports(_ directives: [Directive]) -> [VainTermination] {
    directives.compactMap { directive in
      if case .terminatesNone(let vain) = directive { vain } else { nil }
    }
  }

  @Test func `No worker is terminated if all victims hold less than half of what is missing`() {
    var world = world([(mail, 8), (maps, 9)])
    let directives = world.read(available: 10)
    #expect(directives.victims.isEmpty)
    #expect(
      reports(directives) == [
        VainTermination(
          reason: .tooLittle, level: .critical, missing: .megabytes(40), held: .megabytes(17))
      ])
    #expect(reports(world.read(available: 9) + world.pass(.seconds(60))).isEmpty, "reported once")
    let later = world.read(available: 20) + world.pass(.seconds(5))
    #expect(later.victims == ["maps"], "17 of 30 MB are worth it")
  }

  @Test func `After a termination without effect no second worker is terminated for a minute`() {
    var world = world([(mail, 40), (maps, 30)])
    #expect(world.obey(world.read(available: 40)).victims == ["mail"])
    world.pass(.milliseconds(500))
    let directives = world.read(available: 44)
    #expect(directives.victims.isEmpty)
    #expect(reports(directives).map(\.reason) == [.noEffect])
    #expect(world.pass(.seconds(59)).victims.isEmpty)
    #expect(world.pass(.seconds(1)).victims == ["maps"])
  }

  @Test func `When the level was lower meanwhile, the next shortage may cost a worker at once`() {
    var world = world([(mail, 40), (maps, 30)])
    world.obey(world.read(available: 40))
    world.pass(.milliseconds(500))
    world.read(available: 40)
    world.read(available: 200)
    #expect(world.read(available: 40).victims == ["maps"])
  }

  @Test func `If only stalls hold the level, one termination that doesn't end them is the last`() {
    var world = world([(mail, 40), (maps, 30)])
    #expect(world.obey(world.read(available: 190, some: 90, full: 90)).victims == ["mail"])
    world.pass(.milliseconds(500))
    #expect(world.read(available: 195, some: 90, full: 90).victims.isEmpty)
    #expect(world.state(maps) == .suspended)
  }

  @Test func `At a level that the operator has set, one worker after the other is terminated`() {
    var world = world([(mail, 40), (maps, 30)])
    world.read(available: 900)
    #expect(world.obey(world.send(.pressureSet(.critical, for: .seconds(30)))).victims == ["mail"])
    world.pass(.milliseconds(500))
    #expect(world.read(available: 900).victims == ["maps"])
  }

  @Test func `A worker that only thrift keeps in memory is hibernated, not terminated`() {
    var world = world([(mail, 40), (maps, 30)]) {
      $0.hibernate.enabled = true
      $0.hibernate.after = nil
    }
    #expect(world.verdict(mail)?.contains("16 MB") == true)
    #expect(world.obey(world.read(available: 120)).deeds.isEmpty, "no worker would be ended yet")
    #expect(world.obey(world.read(available: 40)).deeds == ["hibernate mail"])
    world.pass(.milliseconds(500))
    #expect(world.obey(world.read(available: 45)).deeds == ["hibernate maps"])
  }

  @Test("While the shortage has to last, sleepers are hibernated at the level that would end them")
  func jump() {
    var world = World(terminateAfter: .seconds(1)) { $0.hibernate.after = nil }
    world.add(mail, size: .megabytes(8), in: .suspended)
    #expect(world.obey(world.read(available: 40)).deeds == ["hibernate mail"])
  }
}
