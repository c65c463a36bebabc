import Hibernation
import Lifecycle
import Policy
import PolicyFile

/// The components that have to be informed when the configuration was read again. It belongs to the
/// event loop's thread.
struct ConfigurationFollowers {
  let clock: any Timers
  let workers: WorkerRegistry
  let hibernation: HibernationService
  let chronicle: Chronicle
  let pressure: PressureMonitor
  let schedules: ScheduleMonitor
  let encryption: EncryptionTrial
  let rules: RuleAdoption
  /// nil if no commands are run here.
  let hooks: HookRunner?

  /// Informs them of a policy that the engine has.
  func didChangePolicy(_ policy: LifecyclePolicy) {
    chronicle.record(policy, at: clock.now)
    pressure.follow(policy)
  }

  /// Informs them of a configuration that is in force, and that each worker has.
  func follow(_ configuration: DaemonConfiguration) {
    // An idle base that a policy doesn't allow any more is removed at once, and not at the next
    // hibernation.
    for worker in workers.values where !worker.keepsBase {
      hibernation.dropIdleBase(of: worker.id.name)
    }
    schedules.follow()
    encryption.tryEncryption(for: configuration)
    rules.follow(configuration.adoption)
    hooks?.follow()
  }
}
