import Lifecycle
import Policy
import Testing

@Suite("Deadlines and what is learned")
struct DeadlineTests {
  @Test func `Each deadline acts exactly once`() {
    var world = World()
    world.add(web, canShed: true, in: .foreground)
    world.ask(.background, web)
    #expect(world.engine.nextDeadline == world.now + .seconds(5))
    #expect(world.pass(.seconds(5)).deeds == ["finishShed web"])
    #expect(world.send(.deadline).isEmpty)
    #expect(world.send(.deadline).isEmpty)
  }

  @Test func `A late deadline carries out everything that was due`() {
    var world = World()
    world.add(web, in: .terminating)
    world.now = world.now + .seconds(60)
    #expect(world.send(.deadline).deeds == ["kill web", "failed"])
    #expect(world.engine.nextDeadline == nil)
  }

  @Test func `An event at the instant of a deadline comes first, and the deadline still acts`() {
    var world = World()
    world.add(web, canShed: true, in: .foreground)
    world.ask(.background, web)
    world.now = world.now + .seconds(5)
    #expect(world.send(.shedAnswered(web)).deeds == ["finishShed web"])
    world.send(.shedFinished(web, before: .megabytes(8), after: .megabytes(7)))
    #expect(world.engine.snapshot(of: web)?.lastShed?.answered == true)
  }

  @Test func `A clock that steps back doesn't move the engine's time back`() {
    var world = World()
    world.add(web, in: .background)
    world.pass(.seconds(9))
    world.now = .zero
    #expect(world.send(.deadline).isEmpty)
    #expect(world.engine.nextDeadline == .zero + .seconds(10))
  }

  @Test func `An engine with nothing to wait for has no deadline`() {
    var world = World()
    #expect(world.engine.nextDeadline == nil)
    world.add(web, in: .foreground)
    #expect(world.engine.nextDeadline == nil)
  }

  @Test("A worker that relaunches faster than it resumes isn't hibernated without a request")
  func slowerThanRelaunch() {
    var world = World()
    world.add(web, size: .megabytes(10), announcesReadiness: true)
    world.ask(.start, web)
    world.send(.launched(web))
    world.pass(.milliseconds(12))
    world.send(.ready(web))
    world.obey(world.ask(.suspend, web))
    #expect(world.pass(.seconds(300)).deeds.isEmpty)
    #expect(
      world.verdict(web) == "a resume takes about 15 ms, longer than a relaunch, 12 ms")
    world.obey(world.ask(.hibernate, web))
    world.ask(.wake, web)
    world.send(.resumed(web, .milliseconds(7)))
    #expect(world.engine.snapshot(of: web)?.resumeCost == .milliseconds(7))
    world.obey(world.ask(.suspend, web))
    #expect(world.pass(.seconds(45)).deeds == ["hibernate web"], "7 ms beat 12 ms")
  }

  @Test func `The hibernation verdict shows how much of the time has passed`() {
    var world = World()
    world.add(web, in: .suspended)
    world.pass(.seconds(4))
    #expect(
      world.verdict(web)
        == "not yet: suspended for 4 s of hibernate.after 30 s")
    world.obey(world.ask(.hibernate, web))
    #expect(world.verdict(web) == nil)
    world.obey(world.ask(.wake, web))
    world.pass(.seconds(4))
    #expect(
      world.verdict(web)
        == "not suspended yet: in the background for 4 s of background.suspend_after 10 s")
    world.obey(world.pass(.seconds(6)))
    #expect(
      world.verdict(web) == "resumed 10 s ago, within hibernate.cooldown, 45 s")
    world.pass(.seconds(35))
    #expect(world.state(web) == .hibernating, "the cooldown is over")
  }

  @Test func `A removed worker is forgotten when it has ended, and its last request is answered`() {
    var world = World()
    world.add(web, in: .foreground)
    world.send(.removed(web))
    world.ask(.stop, web)
    world.send(.exited(web, .exited(0)))
    #expect(world.answers[world.requests]?.map(\.code) == [.done])
    #expect(world.engine.snapshots().isEmpty)
  }

  @Test(arguments: [WorkerState.background, .suspended, .hibernated])
  func `An adopted worker continues in the state in which it was found`(_ state: WorkerState) {
    var world = World()
    let directives = world.adopt(web, in: state)
    #expect(directives.brief == ["web: terminated → \(state)", "measure web"])
    world.sizes[web] = .megabytes(8)
    world.obey(directives)
    world.obey(world.ask(.foreground, web))
    #expect(world.state(web) == .foreground)
  }

  @Test func `The worker that has been in the foreground longest makes room for another`() {
    var world = World { $0.foreground.max = 2 }
    for name in ["b", "a", "c"] {
      world.add(WorkerID(name), in: .foreground)
      world.pass(.seconds(1))
    }
    #expect(world.state(WorkerID("b")) == .background)
    #expect(
      world.engine.snapshot(of: WorkerID("b"))?.cause == .displaced(by: WorkerID("c")))
    #expect(world.state(WorkerID("a")) == .foreground)
  }
}
