import Policy
import Simulation
import Testing

@Suite("Small worlds")
struct SmallWorldTests {
  /// As deep as a test run has time for; time that passes makes new states without end.
  @Test(
    "keep every invariant, whatever happens in whatever order",
    arguments: [(1, 7), (2, 5), (3, 4), (4, 3)])
  func everything(_ workers: Int, _ depth: Int) throws {
    let explored = try SmallWorld.explore(workers: workers, depth: depth, mostStates: 3_000)
    #expect(explored.states > 300, "\(explored)")
  }

  @Test("do so where traffic decides and nothing is too big")
  func byActivity() throws {
    var policy = LifecyclePolicy()
    policy.foreground = ForegroundRules(by: .activity, max: nil)
    policy.hibernate.maxFootprint = nil
    policy.hibernate.after = .zero
    policy.background.suspendAfter = .seconds(1)
    let explored = try SmallWorld.explore(
      workers: 2, depth: 5, mostStates: 3_000, policy: policy)
    #expect(explored.states > 300, "\(explored)")
  }
}
