import Lifecycle
import Policy
import PolicyFile
import Testing

@Suite("Remedies for workers that don't sleep") struct RemedyTests {
  private func world(
    _ policy: LifecyclePolicy, _ script: (inout World) -> Void
  ) -> World {
    var world = World(policy)
    world.add(web)
    script(&world)
    return world
  }

  /// Runs `script` under the policy, after which the worker isn't in `state`, and again with the
  /// suggested values, after which it is.
  ///
  /// - Returns: the keys that were suggested.
  private func keys(
    _ policy: LifecyclePolicy, quiet: Duration? = nil, leadTo state: WorkerState,
    _ script: (inout World) -> Void
  ) throws -> [String] {
    let before = world(policy, script)
    #expect(before.state(web) != state)
    let remedy = try #require(before.engine.remedy(of: web, quiet: quiet, at: before.now))
    let settings = try PolicySettings(remedy.settings.map { "\($0.key)=\($0.value)" })
    let after = world(try settings.applied(to: policy), script)
    #expect(after.state(web) == state, "\(remedy)")
    return remedy.settings.map(\.key.path)
  }

  private static func policy(_ change: (inout LifecyclePolicy) -> Void) -> LifecyclePolicy {
    var policy = LifecyclePolicy()
    policy.foreground.mode = .activity
    policy.foreground.max = nil
    policy.background.suspendAfter = .seconds(30)
    policy.hibernate.after = .seconds(120)
    change(&policy)
    return policy
  }

  @Test("A worker that is used before idle_after has passed is suspended between its uses")
  func regularUse() throws {
    let policy = Self.policy { _ in }
    let keys = try self.keys(policy, quiet: .seconds(45), leadTo: .suspended) { world in
      world.bring(web, to: .foreground)
      for _ in 0..<10 {
        world.obey(world.send(.wakeNeeded(web, "a connection")))
        world.obey(world.send(.activity(web)))
        world.live(.seconds(45))
      }
    }
    #expect(keys == ["foreground.idle_after", "background.suspend_after"])
  }

  @Test func `A foreground that a person chose ends by itself if activity decides`() throws {
    let manual = Self.policy { $0.foreground.mode = .manual }
    let keys = try self.keys(manual, leadTo: .suspended) { world in
      world.bring(web, to: .foreground)
      world.live(.seconds(100))
    }
    #expect(keys == ["foreground.mode"])
  }

  @Test func `Each obstacle to suspension has a key with which the worker is suspended`() throws {
    let never = Self.policy { $0.background.suspendAfter = nil }
    #expect(
      try keys(never, leadTo: .suspended) { world in
        world.bring(web, to: .background)
        world.live(.seconds(60))
      } == ["background.suspend_after"])
    let long = Self.policy { $0.background.suspendAfter = .seconds(900) }
    #expect(
      try keys(long, leadTo: .suspended) { world in
        world.bring(web, to: .background)
        world.live(.seconds(400))
      } == ["background.suspend_after"])
    #expect(
      try keys(Self.policy { _ in }, leadTo: .suspended) { world in
        world.bring(web, to: .background)
        world.send(.taskBegan(web, task: "upload", limit: nil))
        world.live(.seconds(100))
      } == ["background.task_limit"])
    let held = Self.policy { $0.background.safePoint.hold = .seconds(600) }
    #expect(
      try keys(held, leadTo: .suspended) { world in
        world.bring(web, to: .background)
        world.send(.hold(web, true))
        world.live(.seconds(100))
      } == ["background.safe_point.hold"])
    let locked = Self.policy { $0.background.safePoint.fileLocks = .seconds(600) }
    #expect(
      try keys(locked, leadTo: .suspended) { world in
        world.locks[web] = 1
        world.bring(web, to: .background)
        world.live(.seconds(60))
      } == ["background.safe_point.file_locks"])
    let launched = Self.policy { $0.background.safePoint.afterLaunch = .seconds(600) }
    #expect(
      try keys(launched, leadTo: .suspended) { world in
        world.bring(web, to: .background)
        world.live(.seconds(60))
      } == ["background.safe_point.after_launch"])
  }

  @Test func `Each obstacle to hibernation has a key with which the worker is hibernated`() throws {
    func asleep(_ size: ByteCount = .megabytes(8), for time: Duration = .seconds(240))
      -> (inout World) -> Void
    {
      { world in
        world.sizes[web] = size
        world.bring(web, to: .background)
        world.live(time)
      }
    }
    let off = Self.policy { $0.hibernate.enabled = false }
    #expect(try keys(off, leadTo: .hibernated, asleep()) == ["hibernate.enabled"])
    let ordinary = Self.policy { _ in }
    #expect(
      try keys(ordinary, leadTo: .hibernated, asleep(.megabytes(21)))
        == ["hibernate.max_footprint"])
    #expect(
      try keys(ordinary, leadTo: .hibernated, asleep(.kilobytes(700)))
        == ["hibernate.min_footprint"])
    #expect(
      try keys(ordinary, leadTo: .hibernated, asleep(for: .seconds(100))) == ["hibernate.after"])
    let never = Self.policy { $0.hibernate.after = nil }
    #expect(try keys(never, leadTo: .hibernated, asleep()) == ["hibernate.after"])
  }

  @Test func `In shadow mode the remedy is the command that ends it`() throws {
    let shadow = Self.policy { $0.mode = .shadow }
    let world = self.world(shadow) { $0.bring(web, to: .background) }
    let remedy = try #require(world.engine.remedy(of: web, at: world.now))
    #expect(remedy.settings.isEmpty && remedy.command == "dormouse enforce web")
  }

  @Test func `A worker that sleeps in a moment, or is asleep, needs no remedy`() {
    let policy = Self.policy { _ in }
    let nearly = world(policy) { world in
      world.bring(web, to: .background)
      world.live(.seconds(28))
    }
    #expect(nearly.engine.remedy(of: web, at: nearly.now) == nil)
    let asleep = world(policy) { $0.bring(web, to: .hibernated) }
    #expect(asleep.engine.remedy(of: web, at: asleep.now) == nil)
  }
}
