import Lifecycle
import Policy
import Testing

@Suite("Watchdogs")
struct WatchdogTests {
  private func world(
    canAnswer: Bool = true, _ change: (inout LifecyclePolicy) -> Void = { _ in }
  ) -> World {
    var policy = LifecyclePolicy()
    policy.background.suspendAfter = .seconds(60)
    change(&policy)
    var world = World(policy)
    world.add(web, canShed: true, canAnswer: canAnswer, announcesReadiness: true, in: .foreground)
    return world
  }

  @Test func `A worker that never answers is terminated`() {
    var world = world()
    world.ask(.background, web)
    #expect(world.pass(.milliseconds(9999)).deeds == ["finishShed web"])
    #expect(world.pass(.milliseconds(1)).deeds == ["terminate web"])
    let text = "no answer to didEnterBackground within watchdog.answer, 10 s"
    #expect(world.engine.snapshot(of: web)?.cause == .watchdog(text))
  }

  @Test func `A worker that never answers is only reported if the policy says so`() {
    var world = world { $0.watchdog.onTimeout = .report }
    world.ask(.background, web)
    let directives = world.pass(.seconds(10))
    #expect(directives.brief == ["finishShed web", "missed web"])
    #expect(world.state(web) == .background)
    #expect(world.engine.snapshot(of: web)?.lastMiss?.at == .zero + .seconds(10))
  }

  @Test func `An answer after the shed deadline still satisfies the watchdog`() {
    var world = world()
    world.ask(.background, web)
    world.pass(.seconds(9))
    world.send(.shedAnswered(web))
    world.pass(.seconds(20))
    #expect(world.state(web) == .background)
  }

  @Test func `A worker that can't answer isn't expected to answer`() {
    var world = world(canAnswer: false)
    world.ask(.background, web)
    world.pass(.seconds(30))
    #expect(world.state(web) == .background)
  }

  @Test(
    "Watchdogs stand still while the worker is frozen, and start a full interval when it is thawed")
  func frozen() {
    var world = world()
    world.ask(.background, web)
    world.pass(.seconds(6))
    world.send(.shedFinished(web, before: .megabytes(8), after: .megabytes(8)))
    world.obey(world.ask(.suspend, web))
    #expect(world.state(web) == .suspended)
    world.pass(.seconds(20))
    #expect(world.state(web) == .suspended)
    world.obey(world.ask(.wake, web))
    world.pass(.milliseconds(9999))
    #expect(world.state(web) == .background)
    world.pass(.milliseconds(1))
    #expect(world.state(web) == .terminating)
  }

  @Test("A worker whose probe of liveness fails is terminated gracefully, and not while it sleeps")
  func unhealthy() {
    var world = World()
    world.add(web)
    world.ask(.start, web)
    world.send(.launched(web))
    world.obey(world.ask(.suspend, web))
    #expect(world.state(web) == .suspended)
    #expect(world.send(.unhealthy(web, "its probe failed")).isEmpty)
    world.obey(world.ask(.wake, web))
    #expect(world.send(.unhealthy(web, "its probe failed")).contains(.terminate(web)))
    #expect(world.engine.snapshot(of: web)?.cause == .watchdog("its probe failed"))
  }

  @Test("Of workers that are started at once, the last has as long to be ready as the first")
  func queuedLaunch() {
    var world = World()
    world.add(web, announcesReadiness: true)
    world.ask(.start, web)
    world.pass(.seconds(60))
    #expect(world.state(web) == .launching, "its process isn't started yet")
    #expect(world.send(.launched(web)).deeds.isEmpty)
    world.pass(.seconds(19))
    #expect(world.state(web) == .launching)
    world.send(.launched(web))
    world.pass(.seconds(1))
    #expect(world.state(web) == .terminating, "the same report again doesn't count")
  }

  @Test func `EXTEND_TIMEOUT_USEC puts off the launch, up to the policy's limit`() {
    var world = World()
    world.add(web, announcesReadiness: true)
    world.ask(.start, web)
    world.pass(.seconds(60))
    // The report that it was launched comes after its own message.
    world.send(.extendTimeout(web, .seconds(1)))
    world.send(.launched(web))
    world.pass(.seconds(15))
    world.send(.extendTimeout(web, .seconds(30)))
    world.pass(.seconds(29))
    #expect(world.state(web) == .launching)
    world.send(.extendTimeout(web, .seconds(3600)))
    world.pass(.seconds(35))
    #expect(world.state(web) == .launching)
    world.pass(.seconds(1))
    #expect(world.state(web) == .terminating, "20 s and the 60 s of watchdog.max_extension")
  }

  @Test func `EXTEND_TIMEOUT_USEC puts off the answer, and never shortens it`() {
    var world = world()
    world.ask(.background, web)
    world.send(.extendTimeout(web, .seconds(1)))
    world.pass(.seconds(4))
    world.send(.extendTimeout(web, .seconds(20)))
    world.pass(.milliseconds(19_999))
    #expect(world.state(web) == .background)
    world.pass(.milliseconds(1))
    #expect(world.state(web) == .terminating)
  }

  @Test("EXTEND_TIMEOUT_USEC puts off the kill, but not in a termination for lack of memory")
  func kill() {
    var world = world()
    world.ask(.stop, web)
    world.send(.extendTimeout(web, .seconds(20)))
    #expect(world.pass(.seconds(19)).deeds.isEmpty)
    #expect(world.pass(.seconds(1)).deeds == ["kill web"])

    var short = World { $0.hibernate.enabled = false }
    short.add(web, in: .background)
    #expect(short.read(available: 40).deeds == ["terminate web"])
    short.send(.extendTimeout(web, .seconds(20)))
    #expect(short.pass(.seconds(2)).deeds == ["kill web"])
  }
}
