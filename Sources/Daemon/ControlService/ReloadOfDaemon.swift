import Lifecycle
import Policy
import PolicyFile

/// The daemon's implementation for `ConfigurationReloader`.
final class ReloadOfDaemon: ConfigurationHost {
  struct Parts {
    let services: Services
    let driver: EngineDriver
    let workers: WorkerRegistry
    let phase: DaemonPhase
    let requests: WorkerRequests
    let configuration: ConfigurationInForce
    /// The daemon's own.
    let environment: [String: String]
    /// Reads the configuration again.
    let read: @Sendable () -> ParseResult<DaemonConfiguration>
    let chronicle: Chronicle
    let pressure: PressureMonitor
    let supervision: WorkerSupervision
    let starter: DependencyStarter
    let declared: DeclaredWorkers
    let listening: ListeningSockets
    let schedules: ScheduleMonitor
    let encryption: EncryptionTrial
    let returning: ReturningWorkers
  }

  private let parts: Parts

  init(_ parts: Parts) { self.parts = parts }

  /// The configuration's files, and the policies that it names, may be in a file system that doesn't answer.
  func makeReloader() -> ConfigurationReloader {
    let look = SharedLook<ParseResult<DaemonConfiguration>>(
      parts.services.jobs, about: "configuration", within: ConfigurationReloader.patience
    ) { [read = parts.read] in read }
    return ConfigurationReloader(driver: parts.driver, host: self, log: parts.services.log) {
      look.ask(then: $0)
    }
  }

  private var workers: WorkerRegistry { parts.workers }
  var isEnding: Bool { parts.phase.isEnding }
  var isLeaving: Bool { parts.phase.isLeaving }

  func known(_ id: WorkerID) -> KnownWorker? {
    workers[id].map { KnownWorker(configuration: $0.configuration, isDeclared: $0.isDeclared) }
  }

  var knownWorkers: [WorkerID] { Array(workers.keys) }

  func policyHasChanged(_ policy: LifecyclePolicy) {
    parts.chronicle.record(policy, at: EventLoop.now)
    parts.pressure.follow(policy)
  }

  func apply(_ configuration: DaemonConfiguration) {
    parts.configuration.apply(configuration)
  }

  func remove(_ id: WorkerID) {
    parts.supervision.forgetPlans(of: id)
    if parts.driver.state.state(of: id)?.isAlive == true {
      parts.requests.request(.stop, id) { _ in }
    }
    // The request may have ended it at once.
    if let runtime = workers[id] { parts.listening.closeListeners(of: runtime) }
    parts.driver.send(.removed(id))
    if parts.driver.state.state(of: id) == nil { parts.supervision.removeWorker(id) }
  }

  func undeclare(_ id: WorkerID) {
    parts.supervision.forgetPlans(of: id)
    workers[id]?.isDeclared = false
  }

  func whenAdopted(_ id: WorkerID, _ body: @escaping () -> Void) -> Bool {
    parts.returning.whenBack(id, body)
  }

  func introduce(_ configuration: WorkerConfiguration) {
    parts.declared.addDeclared(configuration)
    if let runtime = workers[WorkerID(configuration.name)] { parts.listening.relisten(runtime) }
  }

  func apply(_ configuration: WorkerConfiguration, of id: WorkerID) {
    guard let runtime = workers[id] else { return }
    runtime.configuration = configuration
    runtime.environment = parts.environment.merging(configuration.environment) { $1 }
    runtime.isDeclared = true
    parts.supervision.restartRulesChanged(id)
    parts.driver.send(.profileChanged(id, runtime.profile))
    if parts.driver.state.state(of: id)?.isAlive != true { parts.listening.relisten(runtime) }
  }

  func setPolicy(_ policy: LifecyclePolicy, of id: WorkerID) {
    guard let runtime = workers[id] else { return }
    runtime.configuration.policy = policy
    parts.driver.send(.profileChanged(id, runtime.profile))
  }

  func startAutomatically(_ added: [WorkerConfiguration]) {
    parts.declared.startAutomatically(added)
    parts.starter.advance()
  }

  func configurationHasChanged() {
    // What a policy doesn't want any more doesn't wait for the next hibernation.
    for runtime in workers.values where !runtime.keepsBase {
      parts.services.hibernation.dropIdleBase(of: runtime.id.name)
    }
    parts.schedules.follow()
    parts.encryption.tryEncryption(for: parts.configuration.current)
  }
}
