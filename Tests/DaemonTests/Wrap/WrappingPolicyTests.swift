import Policy
import Testing

@testable import Daemon

@Suite("The policy that is built into wrap") struct WrappingPolicyTests {
  private let policy = LifecyclePolicy.wrapping()

  @Test func `It hibernates servers of any size within two minutes of their last use`() throws {
    let suspended = policy.foreground.idleAfter + (try #require(policy.background.suspendAfter))
    // Ten seconds remain for the samples in which a use and its end are seen.
    #expect(suspended + (try #require(policy.hibernate.after)) == .seconds(110))
    #expect(policy.hibernate.maxFootprint == nil && policy.foreground.mode == .activity)
  }

  @Test("Its times get longer for a server that is needed too soon, and timers of a job wake it")
  func careful() throws {
    #expect(try #require(policy.earlyWake.maxIdle) == .seconds(600))
    #expect(try #require(policy.background.wakeForTimers) == .seconds(45))
  }
}
