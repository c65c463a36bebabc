import Lifecycle
import Policy
import PolicyFile

// What `ConfigurationReloader` gets of the daemon.

extension Daemon: ConfigurationHost {
  /// Its files, and the policies that it names, may be in a file system that doesn't answer.
  func makeReloader() -> ConfigurationReloader {
    let look = SharedLook<ParseResult<DaemonConfiguration>>(
      jobs, about: "configuration", within: ConfigurationReloader.patience
    ) { [unowned self] in settings.reload }
    return ConfigurationReloader(driver, self, log) { look.take(then: $0) }
  }

  func known(_ id: WorkerID) -> KnownWorker? {
    workers[id].map { KnownWorker(configuration: $0.configuration, isDeclared: $0.isDeclared) }
  }

  var knownWorkers: [WorkerID] { Array(workers.keys) }

  func policyHasChanged(_ policy: LifecyclePolicy) {
    chronicle.note(policy, at: now)
    pressureMonitor.follow(policy)
  }

  func take(_ configuration: DaemonConfiguration) { settings.configuration = configuration }

  func remove(_ id: WorkerID) {
    forgetPlans(of: id)
    if engine.state(of: id)?.isAlive == true { request(.stop, id) { _ in } }
    // The request may have ended it at once.
    if let runtime = workers[id] { closeListeners(of: runtime) }
    driver.send(.removed(id))
    if engine.state(of: id) == nil { removeWorker(id) }
  }

  func introduce(_ configuration: WorkerConfiguration) {
    declared.addDeclared(configuration)
    if let runtime = workers[WorkerID(configuration.name)] { relisten(runtime) }
  }

  func take(_ configuration: WorkerConfiguration, of id: WorkerID) {
    guard let runtime = workers[id] else { return }
    runtime.configuration = configuration
    runtime.environment = settings.environment.merging(configuration.environment) { $1 }
    runtime.isDeclared = true
    restartRulesChanged(runtime)
    driver.send(.profileChanged(id, runtime.profile))
    if engine.state(of: id)?.isAlive != true { relisten(runtime) }
  }

  func setPolicy(_ policy: LifecyclePolicy, of id: WorkerID) {
    guard let runtime = workers[id] else { return }
    runtime.configuration.policy = policy
    driver.send(.profileChanged(id, runtime.profile))
  }

  func startAutomatically(_ added: [WorkerConfiguration]) {
    declared.startAutomatically(added)
    dependencyStarter.advance()
  }

  func configurationHasChanged() {
    // What a policy doesn't want any more doesn't wait for the next hibernation.
    for runtime in workers.values where !runtime.keepsBase {
      hibernation.dropIdleBase(of: runtime.id.name)
    }
    schedules.follow()
    senses.encryption.tryEncryption(for: settings.configuration)
  }
}
