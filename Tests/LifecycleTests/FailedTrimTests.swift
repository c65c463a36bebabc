import Lifecycle
import Policy
import Testing

@Suite("Trims that failed") struct FailedTrimTests {
  private static let web = WorkerID("web")

  @Test("The sentence about trims names the failure, and an attempt to come only if there is one")
  func sentence() throws {
    var world = World()
    world.add(Self.web, size: .megabytes(2), in: .foreground)
    world.send(.footprint(Self.web, .megabytes(2)))
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
