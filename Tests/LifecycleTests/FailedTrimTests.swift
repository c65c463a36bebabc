import Lifecycle
import Policy
import Testing

@Suite("Trims that failed") struct FailedTrimTests {
  private static let web = WorkerID("web")

  private func world(
    _ size: ByteCount = .megabytes(40), change: (inout LifecyclePolicy) -> Void
  ) -> World {
    var policy = LifecyclePolicy()
    policy.foreground.mode = .manual
    change(&policy)
    var world = World(policy)
    world.add(Self.web, size: size)
    world.bring(Self.web, to: .foreground)
    world.send(.footprint(Self.web, size))
    return world
  }

  @Test("After a failure the policy waits for trim.every, so that it doesn't report one a minute")
  func policyWaits() {
    var world = world {
      $0.trim.after = .seconds(10)
      $0.trim.every = .seconds(600)
    }
    #expect(world.pass(.seconds(40)).deeds == ["trim web"])
    world.send(.trimFailed(Self.web, "there is no swap", permanent: false))
    #expect(world.pass(.seconds(590)).deeds.isEmpty)
    #expect(world.pass(.seconds(20)).deeds == ["trim web"])
  }

  @Test("After a failure the ladder waits for a minute")
  func ladderWaits() {
    var world = world { $0.ladder.critical = [.trim] }
    #expect(world.read(available: 10).deeds == ["trim web"])
    world.send(.trimFailed(Self.web, "there is no swap", permanent: false))
    world.pass(.seconds(30))
    #expect(world.read(available: 10).deeds.isEmpty)
    world.pass(.seconds(40))
    #expect(world.read(available: 10).deeds == ["trim web"])
  }

  @Test("The sentence about trims names the failure, and an attempt to come only if there is one")
  func sentence() throws {
    var world = world(.megabytes(2)) { _ in }
    #expect(world.ask(.trim, Self.web).deeds == ["trim web"])
    world.send(.trimFailed(Self.web, "there is no swap", permanent: false))
    let trim = try #require(world.engine.snapshot(of: Self.web, at: world.now)?.trim)
    #expect(
      trim.sentence
        == "trim.after is never: only a request trims it; the last attempt failed: there is no swap"
    )
    #expect(world.ask(.trim, Self.web).deeds == ["trim web"])
    world.send(.trimFailed(Self.web, "not permitted", permanent: true))
    let refused = try #require(world.engine.snapshot(of: Self.web, at: world.now)?.trim)
    #expect(refused.sentence.hasPrefix("it can't be trimmed before its next launch: not permitted"))
    #expect(!refused.sentence.contains("the last attempt"), "\(refused.sentence)")
  }
}
