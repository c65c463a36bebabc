import Testing

@testable import Policy

@Suite struct `A policy that several workers have` {
  private struct Holder: Hashable, Codable { @SharedPolicy var policy: LifecyclePolicy }

  @Test func `Equal policies are kept in memory once, also if each worker's was made separately`() {
    let policies = (0..<3).map { _ in SharedPolicy(wrappedValue: LifecyclePolicy(name: "one")) }
    #expect(policies.allSatisfy { $0.box === policies[0].box })
    let other = SharedPolicy(wrappedValue: LifecyclePolicy(name: "another"))
    #expect(other.box !== policies[0].box && other != policies[0])
    #expect(SharedPolicy(wrappedValue: LifecyclePolicy(name: "one")) == policies[0])
  }

  @Test func `A shared policy is changed for one worker alone`() {
    let first = Holder(policy: LifecyclePolicy(name: "shared"))
    var second = first
    second.policy.foreground.max = 7
    second.policy.background.suspendAfter = nil
    #expect(first.policy == LifecyclePolicy(name: "shared"))
    #expect(second.policy.foreground.max == 7 && second.policy.background.suspendAfter == nil)
    #expect(first != second)
    second = first
    #expect(first == second && first.hashValue == second.hashValue)
  }

  @Test func `A shared policy is equal to one that is kept elsewhere`() {
    let old = SharedPolicy(wrappedValue: LifecyclePolicy(name: "old"))
    for number in 0..<20 { _ = SharedPolicy(wrappedValue: LifecyclePolicy(name: "\(number)")) }
    let new = SharedPolicy(wrappedValue: LifecyclePolicy(name: "old"))
    #expect(new == old && new.hashValue == old.hashValue)
  }
}
