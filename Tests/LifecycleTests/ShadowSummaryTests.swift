import Lifecycle
import Policy
import Testing

@Suite("Shadow mode's account")
struct ShadowSummaryTests {
  @Test("Shadow mode counts what sleep would have freed, and what waking would have cost")
  func account() throws {
    var world = World()
    world.add(web, in: .background)
    world.ask(.shadow, web)
    world.pass(.seconds(3600))
    #expect(world.state(web) == .background)
    world.obey(world.ask(.foreground, web))
    let summary = try #require(world.engine.snapshot(of: web)?.shadow)
    #expect(summary.suspensions == 1 && summary.hibernations == 1 && summary.wakes == 1)
    #expect(summary.sentence == "would have freed 8 MB at the cost of 1 wake of about 13 ms")
    #expect(world.engine.shadowSummary == summary)
  }

  @Test("Shadow mode counts activity as a wake if the operator chooses the foreground")
  func callUnderManual() throws {
    var world = World()
    world.add(web, in: .background)
    world.ask(.shadow, web)
    for call in 1...3 {
      world.pass(.seconds(600))
      #expect(world.engine.imaginesSleep(of: web))
      world.send(.activity(web))
      #expect(world.state(web) == .background)
      #expect(world.engine.snapshot(of: web)?.shadow?.wakes == call)
    }
    world.pass(.seconds(5))
    #expect(!world.engine.imaginesSleep(of: web), "its grace began again with the activity")
    world.pass(.seconds(5))
    let summary = try #require(world.engine.snapshot(of: web)?.shadow)
    #expect(summary.suspensions == 4 && summary.hibernations == 3)
  }

  @Test func `Shadow mode can be switched on and off for one worker at run time`() {
    var world = World()
    let other = WorkerID("other")
    for worker in [other, web] { world.add(worker, in: .background) }
    world.ask(.shadow, web)
    #expect(world.answers[world.requests]?.first?.code == .done)
    world.live(.seconds(60))
    #expect(world.state(web) == .background && world.state(other) == .hibernated)
    #expect(world.engine.snapshot(of: web)?.isShadow == true)
    #expect(world.obey(world.ask(.enforce, web)).deeds.contains("suspend web"))
  }

  @Test func `The verb enforce takes one worker out of a policy in shadow mode`() {
    var world = World { $0.mode = .shadow }
    world.add(web, in: .background)
    world.ask(.enforce, web)
    world.live(.seconds(60))
    #expect(world.state(web) == .hibernated)
  }

  @Test func `Shadow mode counts a hibernation that would have happened under pressure`() {
    var policy = LifecyclePolicy()
    policy.mode = .shadow
    policy.hibernate.after = nil
    var world = World(policy)
    world.add(web, in: .background)
    world.pass(.seconds(60))
    world.read(available: 120)
    #expect(world.engine.shadowSummary.freed == .megabytes(8))
    #expect(world.state(web) == .background)
  }
}
