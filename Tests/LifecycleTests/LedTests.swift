import Lifecycle
import Policy
import Testing

private let clangd = WorkerID("clangd-1")

@Suite("Workers whose life another engine leads")
struct LedTests {
  private func world(
    mayBeTerminated: Bool = false, canShed: Bool = false, _ state: WorkerState = .background,
    change: (inout LifecyclePolicy) -> Void = { _ in }
  ) -> World {
    var policy = LifecyclePolicy()
    policy.background.suspendAfter = .seconds(1)
    policy.hibernate.after = .seconds(1)
    policy.hibernate.maxFootprint = nil
    policy.foreground.max = 1
    policy.ladder.critical.insert(.hibernate, at: 0)
    change(&policy)
    var world = World(policy)
    world.adopt(clangd, in: state) { profile in
      profile.leader = "its wrapper, pid 1"
      profile.mayBeTerminated = mayBeTerminated
      profile.canShed = canShed
    }
    world.sizes[clangd] = .megabytes(90)
    world.send(.footprint(clangd, .megabytes(90)))
    return world
  }

  @Test(
    "A worker led by another engine stays where its leader says, whatever the policy here would do")
  func leftAlone() {
    var world = world()
    #expect(world.pass(.seconds(600)).deeds.isEmpty)
    world.send(.moved(clangd, .suspended))
    world.send(.footprint(clangd, .megabytes(90)))
    #expect(world.state(clangd) == .suspended)
    #expect(world.pass(.seconds(600)).deeds.isEmpty)
    world.send(.moved(clangd, .foreground))
    #expect(world.state(clangd) == .foreground)
    // Neither worker displaces the other.
    world.add(web, in: .foreground)
    #expect(world.state(clangd) == .foreground && world.state(web) == .foreground)
    world.ask(.suspend, clangd)
    #expect(world.answers[world.requests]?.first?.code == .refused)
  }

  @Test func `A change that the leader has made has the leader's reason, if it has given one`() {
    var world = world()
    world.send(.moved(clangd, .suspended, "idle in the background for 30 s"))
    #expect(world.engine.snapshot(of: clangd)?.cause.sentence == "idle in the background for 30 s")
    world.send(.moved(clangd, .foreground))
    #expect(world.engine.snapshot(of: clangd)?.cause.sentence == "decided by its wrapper")
  }

  @Test("A worker led by another engine that must not end is hibernated only while it sleeps")
  func hibernated() {
    var world = world()
    #expect(world.read(available: 120).deeds.isEmpty)
    world.send(.moved(clangd, .suspended))
    #expect(world.send(.footprint(clangd, .megabytes(90))).deeds == ["hibernate clangd-1"])
    // A report from the leader meanwhile doesn't count, because the request has an outcome.
    world.send(.moved(clangd, .foreground))
    #expect(world.state(clangd) == .hibernating)
    world.send(.hibernated(clangd, world.hibernation(clangd)))
    #expect(world.state(clangd) == .hibernated)
    world.send(.moved(clangd, .foreground))
    #expect(world.state(clangd) == .foreground)
  }

  @Test("The ladder trims a running worker led by another engine, and its policy here doesn't")
  func trimmed() {
    var world = world { policy in
      policy.ladder.critical = [.trim]
      policy.trim.after = .seconds(1)
    }
    #expect(world.pass(.seconds(600)).deeds.isEmpty)
    #expect(world.read(available: 10).deeds == ["trim clangd-1"])
    world.send(.trimmed(clangd, world.trim(clangd)))
    #expect(world.engine.snapshot(of: clangd)?.trim?.count == 1)
    // Nothing worth a trim is left, and a sleeping worker isn't trimmed.
    #expect(world.pass(.seconds(600)).deeds.isEmpty)
  }

  @Test(
    "A worker led by another engine is terminated for memory only if allowed, and is in the report")
  func terminated() throws {
    var spared = world(.suspended)
    #expect(spared.read(available: 10).victims.isEmpty)

    var world = world(mayBeTerminated: true)
    #expect(world.read(available: 10).deeds == ["hibernate clangd-1"])
    world.send(.hibernateFailed(clangd, "it is busy", permanent: false))
    #expect(world.state(clangd) == .background)
    world.pass(.milliseconds(500))
    #expect(world.read(available: 10).victims == ["clangd-1"])
    #expect(world.pass(.seconds(2)).deeds == ["kill clangd-1"])
    world.send(.exited(clangd, .unknown))
    world.send(.removed(clangd))
    world.pass(.seconds(1))
    let report = world.read(available: 900).jetsamReports.first
    #expect(report?.entries.first?.gaveBack == .megabytes(90))
    let because = try #require(report?.entries.first?.victimBecause)
    #expect(because.hasSuffix("; its wrapper didn't hibernate it: it is busy"), "\(because)")
    #expect(world.state(clangd) == nil)
  }

  @Test(
    "A led worker that runs is hibernated instead of terminated, and returns as its leader decides",
    arguments: [WorkerState.foreground, .background])
  func hibernatedInsteadOfEnd(state: WorkerState) {
    var world = world(mayBeTerminated: true, state)
    #expect(world.read(available: 10).deeds == ["hibernate clangd-1"])
    world.send(.hibernated(clangd, world.hibernation(clangd)))
    world.send(.moved(clangd, .hibernated))
    #expect(world.state(clangd) == .hibernated)
    world.send(.moved(clangd, .background))
    #expect(world.state(clangd) == .background)
  }

  @Test func `A worker led by another engine is asked for memory under pressure while it runs`() {
    var world = world(canShed: true)
    #expect(world.read(available: 10).deeds == ["shed clangd-1 memoryWarning"])
    world.send(.shedAnswered(clangd))
    world.send(.shedFinished(clangd, before: .megabytes(90), after: .megabytes(60)))
    #expect(world.engine.snapshot(of: clangd)?.lastShed?.after == .megabytes(60))
    #expect(world.state(clangd) == .background)
  }

  @Test("A worker led by another engine that falls asleep while it is asked isn't waited for")
  func shedAsleep() {
    var world = world(canShed: true)
    #expect(world.read(available: 10).deeds == ["shed clangd-1 memoryWarning"])
    world.send(.moved(clangd, .suspended))
    #expect(world.engine.snapshot(of: clangd)?.lastShed?.answered == false)
    world.send(.footprint(clangd, .megabytes(90)))
    #expect(world.pass(.seconds(3)).deeds == ["hibernate clangd-1"])
  }

  @Test("A worker led by another engine is removed with its leader, without a directive for it")
  func removed() {
    var world = world(.suspended)
    world.send(.released(clangd))
    #expect(world.state(clangd) == nil)
    #expect(world.read(available: 10).deeds.isEmpty)
  }
}
