import Lifecycle
import Policy
import Testing

@Suite("The safe point before a suspension")
struct SafePointTests {
  /// A world with a worker in the background whose grace of 10 s is just over.
  private func world(
    locks: Int = 0, _ change: (inout LifecyclePolicy) -> Void = { _ in }
  ) -> World {
    var policy = LifecyclePolicy()
    policy.hibernate.after = nil
    change(&policy)
    var world = World(policy)
    world.add(web)
    world.locks[web] = locks
    world.bring(web, to: .background)
    return world
  }

  @Test func `A suspension waits for file locks to be released, and checks every second`() {
    var world = world(locks: 2)
    world.pass(.seconds(13))
    #expect(world.state(web) == .background)
    #expect(world.verdict(web)?.contains("file lock") == true)
    world.locks[web] = 0
    world.pass(.milliseconds(999))
    #expect(world.state(web) == .background)
    world.pass(.milliseconds(1))
    #expect(world.state(web) == .suspending)
  }

  @Test func `A suspension continues when file locks are held for longer than the policy waits`() {
    var world = world(locks: 1)
    world.pass(.milliseconds(19_999))
    #expect(world.state(web) == .background)
    world.pass(.milliseconds(1))
    #expect(world.state(web) == .suspending)
  }

  @Test func `A suspension waits only once for a lock that is never released`() {
    var world = world(locks: 1)
    world.obey(world.pass(.seconds(20)))
    world.obey(world.ask(.wake, web))
    world.pass(.seconds(10))
    #expect(world.state(web) == .suspending)
  }

  @Test func `File locks aren't checked if the policy doesn't wait for them`() {
    var world = world(locks: 1) { $0.background.safePoint.fileLocks = .zero }
    world.pass(.seconds(10))
    #expect(world.state(web) == .suspending)
  }

  @Test func `A check for file locks that never ends doesn't hold up a suspension`() {
    var engine = world(locks: 0).engine
    #expect(
      engine.handle(.deadline, at: .zero + .seconds(10)) == [.checkSafePoint(web)])
    #expect(engine.handle(.deadline, at: .zero + .milliseconds(14_999)).isEmpty)
    #expect(engine.handle(.deadline, at: .zero + .seconds(15)).brief.last == "suspend web")
  }

  @Test func `A requested suspension waits for file locks, but not for the grace`() {
    var world = world(locks: 1)
    #expect(world.ask(.suspend, web).deeds.isEmpty)
    world.locks[web] = 0
    #expect(world.pass(.seconds(1)).deeds == ["suspend web"])
  }

  @Test func `X_DORMOUSE_HOLD keeps a worker awake until the worker releases the hold`() {
    var world = world()
    world.send(.hold(web, true))
    world.pass(.seconds(60))
    #expect(world.state(web) == .background)
    #expect(world.send(.hold(web, false)).deeds == ["suspend web"])
  }

  @Test func `X_DORMOUSE_HOLD ends at the policy's limit`() {
    var world = world { $0.background.safePoint.hold = .seconds(60) }
    world.send(.hold(web, true))
    world.pass(.milliseconds(59_999))
    #expect(world.state(web) == .background)
    world.pass(.milliseconds(1))
    #expect(world.state(web) == .suspending)
  }

  @Test func `No worker is suspended before the least up-time since its launch`() {
    var world = world { $0.background.safePoint.afterLaunch = .seconds(30) }
    world.pass(.seconds(29))
    #expect(world.state(web) == .background)
    world.pass(.seconds(1))
    #expect(world.state(web) == .suspending)
  }

  @Test func `No worker is suspended before the least up-time since its wake`() {
    var world = world { $0.background.safePoint.afterWake = .seconds(45) }
    world.obey(world.pass(.seconds(10)))
    world.obey(world.send(.wakeNeeded(web, "data")))
    world.pass(.seconds(44))
    #expect(world.state(web) == .background)
    world.pass(.seconds(1))
    #expect(world.state(web) == .suspending)
  }
}
