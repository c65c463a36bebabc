import Policy
import Testing

@testable import Lifecycle

@Suite("Protection for a time")
struct TimedProtectionTests {
  /// A world in which `mail` is the first victim.
  private func world(_ change: (inout LifecyclePolicy) -> Void = { _ in }) -> World {
    var policy = LifecyclePolicy()
    policy.background.suspendAfter = nil
    policy.hibernate.enabled = false
    policy.foreground.max = nil
    var workerPolicy = policy
    change(&workerPolicy)
    var world = World(policy)
    world.add(mail, size: .megabytes(90), policy: workerPolicy, in: .suspended)
    world.send(.footprint(mail, .megabytes(90)))
    return world
  }

  private func protect(_ world: inout World, for time: Duration?) -> [Directive] {
    world.requests += 1
    return world.send(
      .request(
        Request(id: world.requests, verb: .protect, worker: mail, lasting: time)))
  }

  @Test func `The protection ends by itself, and then the worker may be terminated`() throws {
    var world = world()
    let answers = protect(&world, for: .seconds(600))
    let text = answers.compactMap {
      if case .answer(_, let answer) = $0 { answer.text } else { nil }
    }
    #expect(text == ["mail is protected for 10 m: it isn't terminated for lack of memory"])
    world.pass(.seconds(60))
    let snapshot = try #require(world.engine.snapshot(of: mail))
    #expect(snapshot.protection == .request)
    #expect(
      snapshot.protection?.sentence(for: snapshot.protectedUntil.map { $0 - world.now })
        == "protected on request for 9 m more (`dormouse protect`)")
    #expect(world.engine.explanation(of: mail, at: world.now)?.protectionLeft == .seconds(540))
    #expect(world.read(available: 20).victims.isEmpty)
    var all = world.pass(.seconds(539))
    #expect(all.victims.isEmpty)
    all = world.pass(.seconds(1))
    all += world.read(available: 20)
    #expect(all.victims == ["mail"])
    #expect(world.engine.snapshot(of: mail)?.protectedUntil == nil)
  }

  @Test("A later request replaces the time: another one, none, or the end of the protection")
  func replaced() {
    var world = world()
    _ = protect(&world, for: .seconds(60))
    _ = protect(&world, for: .seconds(600))
    world.pass(.seconds(100))
    #expect(world.engine.protection(of: mail) == .request)
    _ = protect(&world, for: nil)
    world.pass(.seconds(1000))
    #expect(world.engine.protection(of: mail) == .request)
    _ = protect(&world, for: .seconds(60))
    world.ask(.unprotect, mail)
    #expect(world.engine.protection(of: mail) == nil)
    #expect(world.engine.protectionEnds(of: mail) == nil)
    world.pass(.seconds(100))
    #expect(world.engine.protection(of: mail) == nil)
  }

  @Test func `When the time is over, the protection by the policy stays`() {
    var world = world { $0.terminate.forMemory = false }
    _ = protect(&world, for: .seconds(60))
    world.pass(.seconds(61))
    #expect(world.engine.protection(of: mail) == .policy)
  }

  @Test(
    "A protection for a time continues over the daemon's restart; one without an end ends there")
  func restart() {
    var world = world()
    _ = protect(&world, for: .seconds(600))
    world.pass(.seconds(100))
    let learned = world.engine.learned.moved(by: .seconds(50))
    var next = World(world.engine.policy)
    next.engine = Engine(policy: world.engine.policy, remembering: learned)
    next.now = world.now + .seconds(50)
    next.add(mail, size: .megabytes(90))
    #expect(next.engine.protection(of: mail) == .request)
    next.pass(.seconds(499))
    #expect(next.engine.protection(of: mail) == .request)
    next.pass(.seconds(1))
    #expect(next.engine.protection(of: mail) == nil)

    _ = protect(&world, for: nil)
    let other = Engine(policy: world.engine.policy, remembering: world.engine.learned)
    #expect(other.learned.workers[mail]?.protectedUntil == nil)
  }

  @Test func `A worker that another engine leads is protected for a time, too`() {
    var world = world()
    world.adopt(web, in: .suspended) { $0.leader = "its wrapper, pid 1" }
    world.requests += 1
    world.send(
      .request(Request(id: world.requests, verb: .protect, worker: web, lasting: .seconds(60))))
    #expect(world.engine.protection(of: web) == .request)
    world.pass(.seconds(60))
    #expect(world.engine.protection(of: web) == nil)
  }
}
