import Hibernation
import Lifecycle
import Policy
import PolicyFile

/// The components that look again at what they do when the configuration was read again. Belongs to the loop's thread.
struct ConfigurationFollowers {
  let clock: any Timers
  let workers: WorkerRegistry
  let hibernation: HibernationService
  let chronicle: Chronicle
  let pressure: PressureMonitor
  let schedules: ScheduleMonitor
  let encryption: EncryptionTrial
  let rules: RuleAdoption
  /// nil: no commands are run here.
  let hooks: HookRunner?

  /// The engine has the policy.
  func policyHasChanged(_ policy: LifecyclePolicy) {
    chronicle.record(policy, at: clock.now)
    pressure.follow(policy)
  }

  /// The configuration is in force, and each worker has its own.
  func follow(_ configuration: DaemonConfiguration) {
    // What a policy doesn't want any more doesn't wait for the next hibernation.
    for worker in workers.values where !worker.keepsBase {
      hibernation.dropIdleBase(of: worker.id.name)
    }
    schedules.follow()
    encryption.tryEncryption(for: configuration)
    rules.follow(configuration.adoption)
    hooks?.follow()
  }
}
