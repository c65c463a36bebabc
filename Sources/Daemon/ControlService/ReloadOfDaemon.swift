import Lifecycle
import Policy
import PolicyFile

/// What `ConfigurationReloader` gets of the daemon.
final class ReloadOfDaemon: ConfigurationHost {
  private unowned let daemon: Daemon

  init(_ daemon: Daemon) { self.daemon = daemon }

  /// The configuration's files, and the policies that it names, may be in a file system that doesn't answer.
  func makeReloader() -> ConfigurationReloader {
    let look = SharedLook<ParseResult<DaemonConfiguration>>(
      daemon.jobs, about: "configuration", within: ConfigurationReloader.patience
    ) { [unowned daemon] in daemon.settings.reload }
    return ConfigurationReloader(daemon.driver, self, daemon.log) { look.take(then: $0) }
  }

  private var workers: WorkerRegistry { daemon.workers }
  var isEnding: Bool { daemon.isEnding }
  var isLeaving: Bool { daemon.isLeaving }

  func known(_ id: WorkerID) -> KnownWorker? {
    workers[id].map { KnownWorker(configuration: $0.configuration, isDeclared: $0.isDeclared) }
  }

  var knownWorkers: [WorkerID] { Array(workers.keys) }

  func policyHasChanged(_ policy: LifecyclePolicy) {
    daemon.chronicle.note(policy, at: EventLoop.now)
    daemon.pressureMonitor.follow(policy)
  }

  func take(_ configuration: DaemonConfiguration) {
    daemon.settings.configuration = configuration
  }

  func remove(_ id: WorkerID) {
    daemon.supervision.forgetPlans(of: id)
    if daemon.engine.state(of: id)?.isAlive == true { daemon.request(.stop, id) { _ in } }
    // The request may have ended it at once.
    if let runtime = workers[id] { daemon.listening.closeListeners(of: runtime) }
    daemon.driver.send(.removed(id))
    if daemon.engine.state(of: id) == nil { daemon.supervision.removeWorker(id) }
  }

  func undeclare(_ id: WorkerID) {
    daemon.supervision.forgetPlans(of: id)
    workers[id]?.isDeclared = false
  }

  func whenAdopted(_ id: WorkerID, _ body: @escaping () -> Void) -> Bool {
    daemon.survivors.whenBack(id, body)
  }

  func introduce(_ configuration: WorkerConfiguration) {
    daemon.declared.addDeclared(configuration)
    if let runtime = workers[WorkerID(configuration.name)] { daemon.listening.relisten(runtime) }
  }

  func take(_ configuration: WorkerConfiguration, of id: WorkerID) {
    guard let runtime = workers[id] else { return }
    runtime.configuration = configuration
    runtime.environment = daemon.settings.environment.merging(configuration.environment) { $1 }
    runtime.isDeclared = true
    daemon.supervision.restartRulesChanged(id)
    daemon.driver.send(.profileChanged(id, runtime.profile))
    if daemon.engine.state(of: id)?.isAlive != true { daemon.listening.relisten(runtime) }
  }

  func setPolicy(_ policy: LifecyclePolicy, of id: WorkerID) {
    guard let runtime = workers[id] else { return }
    runtime.configuration.policy = policy
    daemon.driver.send(.profileChanged(id, runtime.profile))
  }

  func startAutomatically(_ added: [WorkerConfiguration]) {
    daemon.declared.startAutomatically(added)
    daemon.dependencyStarter.advance()
  }

  func configurationHasChanged() {
    // What a policy doesn't want any more doesn't wait for the next hibernation.
    for runtime in workers.values where !runtime.keepsBase {
      daemon.hibernation.dropIdleBase(of: runtime.id.name)
    }
    daemon.schedules.follow()
    daemon.senses.encryption.tryEncryption(for: daemon.settings.configuration)
  }
}
