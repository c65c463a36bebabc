import Lifecycle
import Policy
import Testing

private let reason = "it has no clients and works by its own timer (1 s)"

@Suite("A worker that works by its own timers") struct StaysAwakeTests {
  private static let policy: LifecyclePolicy = {
    var policy = LifecyclePolicy()
    policy.foreground = ForegroundRules(mode: .activity, max: nil, idleAfter: .seconds(45))
    policy.background.suspendAfter = .seconds(15)
    policy.trim.after = .seconds(100_000)
    return policy
  }()

  /// The worker was refused once. Then it was used.
  private func refused() -> World {
    var world = World(Self.policy)
    world.add(web, size: .megabytes(20), in: .background)
    #expect(world.pass(.seconds(15)).deeds == ["suspend web"])
    world.send(.staysAwake(web, reason))
    world.send(.activity(web))
    return world
  }

  @Test func `It is tried again after ten minutes, whatever uses it meanwhile`() throws {
    var world = refused()
    for _ in 0..<4 {
      #expect(world.pass(.seconds(140)).deeds.isEmpty)
      world.send(.activity(web))
    }
    #expect(world.pass(.seconds(59)).deeds.isEmpty)
    #expect(world.pass(.seconds(1)).deeds == ["suspend web"])
    world.send(.staysAwake(web, reason))
    #expect(world.pass(.seconds(599)).deeds.isEmpty)
    let obstacle = try #require(
      world.engine.explanation(of: web, at: world.now)?.obstacles.first)
    #expect(obstacle.code == "stays_awake" && obstacle.clearsIn == .seconds(1))
    #expect(obstacle.sentence == "\(reason); next check in 1 s")
    #expect(world.pass(.seconds(1)).deeds == ["suspend web"])
  }

  @Test func `It is suspended as soon as it has been over its limit of the footprint long enough`()
  {
    var world = refused()
    world.changeProfile(of: web) { $0.footprintLimits = FootprintLimits(hibernate: .megabytes(30)) }
    world.send(.footprint(web, .megabytes(31)))
    // Its use ends after 45 s.
    #expect(world.pass(.seconds(46)).deeds.isEmpty)
    #expect(world.pass(.seconds(1)).deeds == ["suspend web"])
    #expect(world.state(web) == .suspending)
  }

  @Test func `Over its limit, one that its timer has woken isn't tried again and again`() {
    var world = refused()
    world.changeProfile(of: web) { $0.footprintLimits = FootprintLimits(hibernate: .megabytes(30)) }
    world.send(.footprint(web, .megabytes(20)))
    world.obey(world.ask(.suspend, web))
    #expect(world.state(web) == .suspended)
    world.obey(world.send(.timerDue(web, "a time-out")))
    world.send(.footprint(web, .megabytes(31)))
    #expect(world.pass(.seconds(2)).deeds == ["suspend web"])
    #expect(world.engine.snapshot(of: web)?.mayStayAwake == true)
    world.send(.staysAwake(web, reason))
    var deeds: [String] = []
    for _ in 0..<120 where deeds.isEmpty { deeds = world.pass(.seconds(1)).deeds }
    #expect(deeds == ["suspend web"])
    #expect(world.engine.snapshot(of: web)?.mayStayAwake == false, "it isn't for idleness")
  }

  @Test func `Its time in the background doesn't count from the last attempt to suspend it`() throws
  {
    var world = refused()
    world.pass(.seconds(600))
    world.send(.suspendFailed(web, "a child ran"))
    let snapshot = try #require(world.engine.snapshot(of: web, at: world.now))
    #expect(snapshot.state == .background)
    // It was in the foreground for 45 s.
    #expect(world.now - snapshot.stateSince == .seconds(555))
    #expect(world.engine.explanation(of: web, at: world.now)?.since == .seconds(555))
    world.ask(.foreground, web)
    world.ask(.background, web)
    #expect(world.engine.snapshot(of: web)?.stateSince == world.now)
  }

  @Test func `A request suspends it at once`() {
    var world = refused()
    #expect(world.ask(.suspend, web).deeds == ["suspend web"])
  }

  @Test func `A request that comes during the attempt is carried out after it`() {
    var world = refused()
    world.pass(.seconds(600))
    #expect(world.state(web) == .suspending)
    world.ask(.suspend, web)
    #expect(world.send(.staysAwake(web, reason)).deeds == ["suspend web"])
  }

  @Test func `It is suspended as before if it can't be trimmed`() {
    var world = refused()
    #expect(world.ask(.trim, web).deeds == ["trim web"])
    world.send(.trimFailed(web, "there is no swap", permanent: true))
    #expect(world.pass(.seconds(60)).deeds == ["suspend web"])
    world.send(.suspendFailed(web, "a child ran"))
    #expect(world.pass(.seconds(15)).deeds == ["suspend web"], "the pause of a failure")
  }

  @Test func `After a failure and a use, the next attempt is when the grace is over`() {
    var world = refused()
    world.pass(.seconds(600))
    for pause in [15, 30, 60, 120, 240] {
      world.send(.suspendFailed(web, "a child ran"))
      #expect(world.pass(.seconds(pause)).deeds == ["suspend web"])
    }
    world.send(.suspendFailed(web, "a child ran"))
    world.send(.activity(web))
    #expect(world.pass(.seconds(59)).deeds.isEmpty)
    #expect(world.pass(.seconds(1)).deeds == ["suspend web"])
  }

  @Test func `A later run is tried at its first idleness`() {
    var world = refused()
    world.send(.exited(web, .exited(0)))
    world.bring(web, to: .background)
    #expect(world.pass(.seconds(15)).deeds == ["suspend web"])
  }
}
