import Lifecycle
import Policy
import Testing

@Suite("A worker that its own timer woke")
struct TimerTickTests {
  private func world(
    _ change: (inout LifecyclePolicy) -> Void = { _ in }, asleep: WorkerState = .suspended
  ) -> World {
    var policy = LifecyclePolicy()
    policy.foreground = ForegroundRules(mode: .activity, max: nil, idleAfter: .seconds(60))
    policy.background.suspendAfter = .seconds(30)
    policy.background.wakeForTimers = .seconds(5)
    policy.hibernate.after = .seconds(120)
    policy.hibernate.cooldown = .seconds(20)
    change(&policy)
    var world = World(policy)
    world.add(web, in: .foreground)
    world.live(.seconds(90))
    #expect(world.state(web) == .suspended)
    if asleep == .hibernated { world.live(.seconds(120)) }
    #expect(world.state(web) == asleep)
    return world
  }

  @Test(
    "A worker woken by its own timer sleeps again 2 s after its last work, never in the foreground")
  func tick() throws {
    var world = world()
    world.obey(world.send(.timerDue(web, "a time-out")))
    #expect(world.state(web) == .background)
    #expect(world.engine.snapshot(of: web)?.cause == .timer("a time-out"))
    world.live(.seconds(1))
    world.obey(world.send(.worked(web)))
    let explanation = try #require(world.engine.explanation(of: web, at: world.now))
    #expect(explanation.obstacles.contains { $0.key?.path == "background.wake_for_timers" })
    world.live(.milliseconds(1900))
    #expect(world.state(web) == .background)
    world.live(.milliseconds(100))
    #expect(world.state(web) == .suspended)
    #expect(world.engine.snapshot(of: web)?.cause == .quietAgain)
  }

  @Test func `A worker woken by its own timer is in use as soon as a client talks to it`() {
    var world = world()
    world.obey(world.send(.timerDue(web, "a time-out")))
    world.obey(world.send(.activity(web)))
    #expect(world.state(web) == .foreground)
    world.live(.seconds(59))
    #expect(world.state(web) == .foreground)
  }

  @Test func `A worker woken by its own timer is in use when it works for more than ten seconds`() {
    var world = world()
    world.obey(world.send(.timerDue(web, "a time-out")))
    for _ in 0..<9 {
      world.live(.seconds(1))
      world.obey(world.send(.worked(web)))
      #expect(world.state(web) == .background)
    }
    world.live(.seconds(1))
    world.obey(world.send(.worked(web)))
    #expect(world.state(web) == .foreground)
  }

  /// Runs 40 min with a timer of this interval. Returns the worker's hibernations, and the time in
  /// them.
  private func tick(
    every interval: Duration, _ world: inout World
  ) -> (count: Int, time: Duration) {
    var count = 0
    var time = Duration.zero
    let end = world.now + .seconds(2400)
    while world.now < end {
      let began = world.now
      for case .transition(let step) in world.live(interval) where step.to == .hibernated {
        count += 1
        time += began + interval - step.at
      }
      world.obey(world.send(.timerDue(web, "a time-out")))
    }
    return (count, time)
  }

  @Test func `A worker that its own timer wakes each minute is hibernated again after each tick`() {
    var world = world({ $0.hibernate.cooldown = .seconds(60) }, asleep: .hibernated)
    let (count, time) = tick(every: .seconds(60), &world)
    // With the cool-down, which is for uses, it would be hibernated only in each second minute.
    #expect(count >= 38)
    #expect(time >= .seconds(2400 * 9 / 10), "\(time)")
  }

  @Test(
    "A worker whose own timer needs its image too soon each time is hibernated a few times only")
  func hibernatesSeldom() {
    var world = world(
      {
        $0.hibernate.after = .seconds(1)
        $0.earlyWake = EarlyWakeRules(
          within: .seconds(30), halvesEvery: .seconds(3600), maxIdle: .seconds(600))
      }, asleep: .hibernated)
    #expect(tick(every: .seconds(20), &world).count <= 20)
  }

  @Test func `The cool-down counts after a use, although the worker has a timer`() {
    var world = world({ $0.hibernate.cooldown = .seconds(600) }, asleep: .hibernated)
    world.obey(world.send(.wakeNeeded(web, "data")))
    #expect(world.state(web) == .foreground)
    world.live(.seconds(500))
    #expect(world.state(web) == .suspended)
    world.live(.seconds(110))
    #expect(world.state(web) == .hibernated)
  }

  @Test func `A worker whose images are needed at once is hibernated less often`() throws {
    var world = world({
      $0.earlyWake = EarlyWakeRules(
        within: .seconds(30), halvesEvery: .seconds(3600), maxIdle: .seconds(600))
      $0.hibernate.after = .seconds(10)
    })
    var hibernations = 0
    for _ in 0..<200 {
      for case .transition(let step) in world.live(.seconds(7)) where step.to == .hibernated {
        hibernations += 1
      }
      world.obey(world.send(.timerDue(web, "a time-out")))
    }
    // Without a back-off there would be one hibernation for each cool-down of 20 s.
    #expect(hibernations >= 2 && hibernations < 12)
  }

  @Test func `A request during a wake by the worker's own timer counts more than the timer`() {
    var world = world()
    world.send(.timerDue(web, "a time-out"))
    #expect(world.state(web) == .resuming)
    world.obey(world.ask(.foreground, web) + [.resume(web)])
    #expect(world.state(web) == .foreground)
  }

  @Test("A worker woken by its own timer waits for its full grace where no activity is observed")
  func manual() {
    var world = World { $0.background.wakeForTimers = .seconds(5) }
    world.add(web, in: .suspended)
    world.obey(world.send(.timerDue(web, "a time-out")))
    #expect(world.state(web) == .background)
    world.live(.seconds(9))
    #expect(world.state(web) == .background)
    world.live(.seconds(1))
    #expect(world.state(web) == .suspended)
  }
}
