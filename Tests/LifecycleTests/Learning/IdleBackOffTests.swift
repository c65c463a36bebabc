import Policy
import TestSupport
import Testing

@testable import Lifecycle

@Suite("The idle time of a worker that is needed too soon")
struct IdleBackOffTests {
  private static let rules = EarlyWakeRules(
    within: .seconds(20), halvesEvery: .seconds(3600), maxIdle: .seconds(300))

  private func world(_ change: (inout LifecyclePolicy) -> Void = { _ in }) -> World {
    var policy = LifecyclePolicy()
    policy.hibernate.after = nil
    policy.earlyWake = Self.rules
    change(&policy)
    var world = World(policy)
    world.add(web, in: .background)
    return world
  }

  /// Lets time pass until the worker sleeps, and wakes it after `time`. Returns how long it was
  /// awake.
  private func sleepAndWake(_ world: inout World, after time: Duration) -> Duration {
    let start = world.now
    while world.state(web) != .suspended, world.now < start + .seconds(3600) {
      world.live(.seconds(1))
    }
    let awake = world.now - start
    world.live(time)
    world.obey(world.send(.wakeNeeded(web, "data")))
    return awake
  }

  @Test func `The idle time doubles with each sleep that is too short, up to the limit`() {
    var world = world()
    let times = (0..<9).map { _ in sleepAndWake(&world, after: .seconds(5)) }
    #expect(times == [10, 10, 20, 40, 80, 160, 300, 300, 300].map { .seconds($0) })
  }

  @Test func `The raised idle time is explained with its numbers`() throws {
    var world = world()
    for _ in 0..<5 { _ = sleepAndWake(&world, after: .seconds(5)) }
    let explanation = try #require(world.engine.explanation(of: web, at: world.now))
    let text =
      "needed within 20 s of falling asleep in 5 of its last 5 sleeps: idle time 10 s → 160 s"
      .replacing("160 s", with: Duration.seconds(160).text)
    #expect(explanation.obstacles.contains { $0.sentence.contains(text) })
    #expect(explanation.earlyWake?.sentence(at: world.now).contains(text) == true)
    let raised = world.engine.idleBackOffs(of: web, at: world.now)
    #expect(raised.map(\.key.path) == ["background.suspend_after"])
    #expect(raised.first?.idle == .seconds(160))
  }

  @Test func `The raised idle time shrinks again with sleeps that last, and with time`() {
    var world = world()
    for _ in 0..<5 { _ = sleepAndWake(&world, after: .seconds(5)) }
    #expect(sleepAndWake(&world, after: .seconds(600)) == .seconds(160))
    #expect(sleepAndWake(&world, after: .seconds(600)) == .seconds(80))
    #expect(sleepAndWake(&world, after: .seconds(2 * 3600)) == .seconds(40))
    #expect(sleepAndWake(&world, after: .seconds(600)) == .seconds(10))
  }

  @Test func `The idle time stays if max_idle is never, and after a single early wake`() {
    var never = world { $0.earlyWake.maxIdle = nil }
    for _ in 0..<6 { #expect(sleepAndWake(&never, after: .seconds(5)) == .seconds(10)) }
    var once = world()
    for time in [5, 600, 600, 600, 600, 600, 5, 600] {
      #expect(sleepAndWake(&once, after: .seconds(time)) == .seconds(10))
    }
  }

  @Test func `The raised idle time survives the engine, also with another clock`() throws {
    var world = world()
    for _ in 0..<4 { _ = sleepAndWake(&world, after: .seconds(5)) }
    let kept = world.engine.learned.moved(by: .seconds(-5000)).moved(by: .seconds(5000))
    #expect(kept == world.engine.learned)
    var next = world.successor()
    next.add(web, in: .background)
    #expect(sleepAndWake(&next, after: .seconds(5)) == .seconds(80))
  }

  @Test(
    "The raised idle time is never below the policy's and never above the limit", arguments: 1...50)
  func bounds(_ seed: UInt64) {
    var random = TestRandom(seed: seed)
    var record = SleepRecord()
    var now = Instant.zero
    let base = Duration.seconds(Int(random.next() % 40))
    for _ in 0..<200 {
      now = now + .seconds(Int(random.next() % 5000))
      let before = record.raised(base, from: now, Self.rules) ?? base
      let isEarly = random.next() % 3 > 0
      record.record(isEarly: isEarly, at: now, Self.rules)
      let after = record.raised(base, from: now, Self.rules) ?? base
      #expect(after >= base && after <= max(base, .seconds(300)))
      #expect(isEarly ? after >= before : after <= before)
      #expect(record.early <= record.count && record.count <= SleepRecord.maxCount)
      let later = record.raised(base, from: now + .seconds(3600), Self.rules) ?? base
      #expect(later <= after)
      #expect(record.raised(base, from: now + .seconds(100 * 3600), Self.rules) == nil)
    }
  }
}
