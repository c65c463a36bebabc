import Policy
import TestSupport
import Testing

@Suite("Small worlds")
struct SmallWorldTests {
  /// The number of events that a test on each push tries less than one each night. The last event
  /// needs nine tenths of the time.
  private static let fewer = Nightly.runs ? 0 : 1

  /// Every order of `depth` events is tried, except those that lead through a state that was tried.
  @Test(
    "Small worlds keep every invariant in every order of a given number of events",
    arguments: Nightly.runs ? [(1, 6), (2, 4), (3, 3), (4, 3)] : [(1, 5), (2, 3), (3, 2), (4, 2)])
  func everything(_ workers: Int, _ depth: Int) throws {
    let explored = try SmallWorld.explore(workers: workers, depth: depth, maxStates: 20_000)
    #expect(explored.depth == depth, "\(explored)")
  }

  @Test(
    "Small worlds keep every invariant for some steps if traffic decides and no worker is too big")
  func byActivity() throws {
    var policy = LifecyclePolicy()
    policy.foreground = ForegroundRules(mode: .activity, max: nil)
    policy.hibernate.maxFootprint = nil
    policy.hibernate.after = .zero
    policy.background.suspendAfter = .seconds(1)
    let explored = try SmallWorld.explore(
      workers: 2, depth: 4 - Self.fewer, maxStates: 20_000, policy: policy)
    #expect(explored.depth == 4 - Self.fewer, "\(explored)")
  }

  @Test("Small worlds keep every invariant if small workers are hibernated when suspended")
  func atOnce() throws {
    var policy = LifecyclePolicy()
    policy.foreground = ForegroundRules(mode: .activity, max: nil)
    policy.hibernate.maxFootprint = nil
    policy.hibernate.atOnceUpTo = .megabytes(16)
    policy.background.suspendAfter = .seconds(1)
    let explored = try SmallWorld.explore(
      workers: 2, depth: 4 - Self.fewer, maxStates: 20_000, policy: policy)
    #expect(explored.depth == 4 - Self.fewer, "\(explored)")
  }

  /// The workers here have 8 MB.
  @Test("Small worlds keep every invariant for some steps of a worker that is over all its limits")
  func overLimits() throws {
    let limits = FootprintLimits(
      warn: .megabytes(1), hibernate: .megabytes(2), restart: .megabytes(4),
      sustainedFor: .seconds(1))
    let explored = try SmallWorld.explore(
      workers: 1, depth: 5 - Self.fewer, maxStates: 20_000, limits: limits)
    #expect(explored.depth == 5 - Self.fewer, "\(explored)")
  }

  @Test("Small worlds keep every invariant if each worker wakes the next one, in a circle")
  func together() throws {
    let explored = try SmallWorld.explore(
      workers: 3, depth: 3 - Self.fewer, maxStates: 20_000, wakesTogether: true)
    #expect(explored.depth == 3 - Self.fewer, "\(explored)")
  }
}
