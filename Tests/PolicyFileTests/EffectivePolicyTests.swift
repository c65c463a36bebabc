import Policy
import Testing

@testable import PolicyFile

@Suite struct `The effective policy` {
  private func parsed() throws -> DaemonConfiguration {
    try #require(
      configuration(
        """
        policy_overrides: { hibernate: { after: 20s } }
        workers:
          web: { command: sleep 1, policy: { background: { suspend_after: 30s } } }
        """
      ).value)
  }

  private func value(_ path: String, _ policy: EffectivePolicy) throws -> EffectivePolicy.Value {
    try #require(policy.values.first { $0.path == path })
  }

  @Test func `A replaced value keeps the value that the files declare, and its origin`() throws {
    let configuration = try parsed()
    var policy = EffectivePolicy(
      configuration.workers[0].policy, origins: configuration.origins, worker: "web")
    policy.replace("background.suspend_after", by: "2m", .learned, because: "needed too soon")
    let raised = try value("background.suspend_after", policy)
    #expect(raised.text == "2m" && raised.origin.text == "etc/dormouse.yaml:3")
    #expect(
      raised.change
        == EffectivePolicy.Change(source: .learned, declared: "30s", text: "needed too soon"))
    #expect(try value("hibernate.after", policy).origin.layer == .overrides)
    #expect(try value("hibernate.after", policy).change == nil)
  }

  @Test func `A value that is replaced by the same value isn't shown as changed`() throws {
    let configuration = try parsed()
    var policy = EffectivePolicy(configuration.policy, origins: configuration.origins)
    policy.replace("mode", by: "enforce", .request, because: "set by `dormouse enforce`")
    #expect(try value("mode", policy).change == nil)
  }

  @Test func `A wrapper's values have no file, and those that aren't defaults are marked`()
    throws
  {
    var workerPolicy = LifecyclePolicy()
    workerPolicy.hibernate.after = .seconds(7)
    var policy = EffectivePolicy(workerPolicy, origins: Origins())
    policy.markWrapper()
    #expect(try value("hibernate.after", policy).change?.source == .wrapper)
    #expect(try value("hibernate.cooldown", policy).change == nil)
  }
}
