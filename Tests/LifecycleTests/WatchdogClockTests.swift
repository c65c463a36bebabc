import Lifecycle
import Policy
import Testing

@Suite("A worker's WATCHDOG=1")
struct WatchdogClockTests {
  /// A world with a worker in the foreground that is expected to send WATCHDOG=1 every 10 s.
  private func world(_ change: (inout LifecyclePolicy) -> Void = { _ in }) -> World {
    var policy = LifecyclePolicy()
    policy.background.suspendAfter = .seconds(3600)
    change(&policy)
    var world = World(policy)
    world.add(web, in: .foreground)
    world.send(.watchdogInterval(web, .seconds(10)))
    return world
  }

  @Test(
    "A worker that stops sending WATCHDOG=1 is ended by SIGABRT, and by SIGKILL after its grace")
  func hung() {
    var world = world()
    #expect(world.pass(.milliseconds(9999)).deeds.isEmpty)
    #expect(world.pass(.milliseconds(1)).deeds == ["check watchdog web"])
    // The last sign came 4 s after the start: the next one is due 10 s later.
    #expect(world.send(.watchdogSeen(web, at: .zero + .seconds(4))).isEmpty)
    #expect(world.pass(.milliseconds(3999)).deeds.isEmpty)
    #expect(world.pass(.milliseconds(1)).deeds == ["check watchdog web"])
    #expect(world.send(.watchdogSeen(web, at: .zero + .seconds(4))).deeds == ["abort web"])
    #expect(world.state(web) == .terminating)
    let reason = "no WATCHDOG=1 for 10 s"
    #expect(world.engine.snapshot(of: web)?.cause == .watchdog(reason))
    #expect(world.engine.snapshot(of: web)?.lastMiss?.text == reason)
    #expect(world.pass(world.engine.policy.terminate.grace).deeds == ["kill web"])
  }

  @Test func `A worker that never sent WATCHDOG=1 has a full interval from its readiness`() {
    var world = World { $0.watchdog.launch = .seconds(60) }
    world.add(web, announcesReadiness: true)
    world.ask(.start, web)
    world.send(.launched(web))
    world.send(.watchdogInterval(web, .seconds(10)))
    #expect(world.pass(.seconds(30)).deeds.isEmpty, "it isn't ready")
    world.send(.ready(web))
    #expect(world.pass(.milliseconds(9999)).deeds.isEmpty)
    #expect(world.pass(.milliseconds(1)).deeds == ["check watchdog web"])
    #expect(world.send(.watchdogSeen(web, at: nil)).deeds == ["abort web"])
  }

  @Test("WATCHDOG=1 isn't expected of a worker that sleeps, and a wake begins a full interval")
  func asleep() {
    var world = world { $0.hibernate.after = .seconds(60) }
    world.pass(.seconds(9))
    world.ask(.suspend, web)
    // The message isn't expected while the worker is being suspended either.
    #expect(world.state(web) == .suspending)
    #expect(world.pass(.seconds(20)).deeds.isEmpty)
    world.obey([.suspend(web)])
    #expect(world.state(web) == .suspended)
    let asleep = world.live(.seconds(3000)).brief
    #expect(world.state(web) == .hibernated)
    #expect(!asleep.contains("check watchdog web"))
    world.ask(.wake, web)
    #expect(world.state(web) == .resuming)
    #expect(world.pass(.seconds(20)).deeds.isEmpty)
    world.send(.resumed(web, .seconds(20)))
    let woken = world.now
    #expect(!world.pass(.milliseconds(9999)).brief.contains("check watchdog web"))
    #expect(world.pass(.milliseconds(1)).brief.contains("check watchdog web"))
    #expect(world.send(.watchdogSeen(web, at: woken + .seconds(3))).deeds.isEmpty)
    #expect(world.state(web) == .background)
  }

  @Test("The outcome of a watchdog check from before a sleep doesn't end the worker after it")
  func lateAnswer() {
    var world = world()
    #expect(world.pass(.seconds(10)).deeds == ["check watchdog web"])
    world.obey(world.ask(.suspend, web))
    world.obey(world.ask(.wake, web))
    #expect(world.send(.watchdogSeen(web, at: nil)).deeds.isEmpty)
    #expect(world.state(web) == .background)
  }

  @Test func `A check for WATCHDOG=1 without an outcome is repeated, and ends no worker`() {
    var world = world()
    let deeds = world.pass(.seconds(65)).deeds
    #expect(deeds.count == 6 && Set(deeds) == ["check watchdog web"])
    #expect(world.state(web) == .foreground)
  }

  @Test func `WATCHDOG=trigger ends a worker at once, also while it is launching`() {
    var world = world()
    #expect(world.send(.watchdogTriggered(web)).deeds == ["abort web"])
    #expect(world.engine.snapshot(of: web)?.cause == .watchdog("it sent WATCHDOG=trigger"))
    var starting = World()
    starting.add(web, announcesReadiness: true, in: .launching)
    starting.send(.launched(web))
    #expect(starting.send(.watchdogTriggered(web)).brief.contains("abort web"))
  }

  @Test("WATCHDOG_USEC changes the interval from now on, and 0 switches it off until the run's end")
  func interval() {
    var world = world()
    world.pass(.seconds(9))
    world.send(.watchdogInterval(web, .seconds(60)))
    #expect(world.pass(.milliseconds(59_999)).deeds.isEmpty)
    #expect(world.pass(.milliseconds(1)).deeds == ["check watchdog web"])
    world.send(.watchdogInterval(web, .zero))
    #expect(world.pass(.seconds(600)).deeds.isEmpty)
    world.send(.watchdogInterval(web, .seconds(10)))
    world.send(.exited(web, .signaled(9)))
    world.bring(web, to: .foreground)
    #expect(world.pass(.seconds(600)).deeds.isEmpty, "the next run announces its own")
  }

  @Test func `Shadow mode only reports a missing WATCHDOG=1, once an interval`() {
    var world = world { $0.mode = .shadow }
    world.pass(.seconds(10))
    #expect(world.send(.watchdogSeen(web, at: nil)).brief == ["wouldHave web"])
    #expect(world.pass(.milliseconds(9999)).deeds.isEmpty)
    #expect(world.pass(.milliseconds(1)).deeds == ["check watchdog web"])
    #expect(world.state(web) == .foreground)
  }

  @Test func `An explanation says when a worker is ended unless WATCHDOG=1 comes`() throws {
    var world = world()
    world.pass(.seconds(4))
    let moves = try #require(world.engine.explanation(of: web, at: world.now)).moves
    let isListed = moves.contains {
      $0.to == .terminating && $0.sentence == "no WATCHDOG=1 for 10 s" && $0.after == .seconds(6)
    }
    #expect(isListed)
  }
}
