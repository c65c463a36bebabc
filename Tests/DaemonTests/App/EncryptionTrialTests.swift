import Policy
import PolicyFile
import Testing

@testable import Daemon

@Suite("The trial of encryption") struct EncryptionTrialTests {
  private let world = SenseWorld()
  private let attempts = Pending<JobOutcome<String?>>()
  private let trial: EncryptionTrial

  init() {
    trial = EncryptionTrial(log: world.log) { [attempts] in attempts.add($0) }
  }

  private func policy(_ encrypts: Bool, enabled: Bool = true) -> LifecyclePolicy {
    var policy = LifecyclePolicy(name: "test")
    policy.hibernate.enabled = enabled
    policy.hibernate.encrypt = encrypts
    return policy
  }

  private func configuration(
    _ policy: LifecyclePolicy, _ worker: LifecyclePolicy
  ) -> DaemonConfiguration {
    DaemonConfiguration(
      policy: policy,
      workers: [
        WorkerConfiguration(name: "web", command: ["none"], directory: "/", policy: worker)
      ])
  }

  @Test("The encryption library is loaded only if a policy that hibernates wants encrypted images")
  func wanted() {
    trial.tryEncryption(for: configuration(policy(false), policy(false)))
    trial.tryEncryption(for: configuration(policy(true, enabled: false), policy(false)))
    #expect(attempts.count == 0)
    trial.tryEncryption(for: configuration(policy(true), policy(false)))
    trial.tryEncryption(for: configuration(policy(false), policy(true)))
    #expect(attempts.count == 2)
    attempts.answer(.done(nil))
    #expect(world.logged.isEmpty)
  }

  @Test("An error of the encryption trial is logged; a lost trial, or a second one, logs nothing")
  func obstacle() {
    for outcome in [JobOutcome<String?>.overdue, .busy, .done("no libcrypto.so.3")] {
      trial.tryEncryption(for: configuration(policy(true), policy(true)))
      attempts.answer(outcome)
    }
    #expect(world.logged.count == 1)
    #expect(world.logged.first?.contains("no libcrypto.so.3;") == true)
  }
}
