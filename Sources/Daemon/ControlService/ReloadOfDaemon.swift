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
    let restarts: RestartSupervisor
    let returning: ReturningWorkers
    /// The configuration has other rules of adoption, perhaps.
    var followRules: ([AdoptionRule]) -> Void = { _ in }
    /// The configuration, or a worker's, has other commands in `on:`, perhaps.
    var followHooks: () -> Void = {}
  }

  private let parts: Parts
  private let changes: DeclaredChanges

  init(_ parts: Parts) {
    self.parts = parts
    changes = DeclaredChanges(
      driver: parts.driver, workers: parts.workers, declared: parts.declared,
      requests: parts.requests, starter: parts.starter, supervision: parts.supervision,
      listening: parts.listening)
  }

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

  func known(_ id: WorkerID) -> KnownWorker? { changes.known(id) }

  var knownWorkers: [WorkerID] { Array(workers.keys) }

  func policyHasChanged(_ policy: LifecyclePolicy) {
    parts.chronicle.record(policy, at: EventLoop.now)
    parts.pressure.follow(policy)
  }

  func apply(_ configuration: DaemonConfiguration) {
    parts.configuration.apply(configuration)
  }

  func remove(_ id: WorkerID) { changes.remove(id) }
  func undeclare(_ id: WorkerID) { changes.undeclare(id) }

  func whenAdopted(_ id: WorkerID, _ body: @escaping () -> Void) -> Bool {
    parts.returning.whenBack(id, body)
  }

  func introduce(_ configuration: WorkerConfiguration) {
    parts.declared.addDeclared(configuration)
    if let runtime = workers[WorkerID(configuration.name)] { parts.listening.relisten(runtime) }
  }

  func apply(_ configuration: WorkerConfiguration, of id: WorkerID) {
    changes.apply(configuration, of: id)
  }

  func setPolicy(_ policy: LifecyclePolicy, of id: WorkerID) {
    changes.setPolicy(policy, of: id)
  }

  func hasFailed(_ id: WorkerID) -> Bool {
    if case .pressure = parts.driver.state.snapshot(of: id)?.cause { return false }
    return parts.restarts.hasFailed(id)
  }

  func startAutomatically(added: [WorkerConfiguration], corrected: [WorkerConfiguration]) {
    for worker in corrected { parts.supervision.personAsks(.start, WorkerID(worker.name)) }
    parts.declared.startAutomatically(added + corrected)
    parts.starter.advance()
  }

  func configurationHasChanged() {
    // What a policy doesn't want any more doesn't wait for the next hibernation.
    for runtime in workers.values where !runtime.keepsBase {
      parts.services.hibernation.dropIdleBase(of: runtime.id.name)
    }
    parts.schedules.follow()
    parts.encryption.tryEncryption(for: parts.configuration.current)
    parts.followRules(parts.configuration.current.adoption)
    parts.followHooks()
  }

  var rules: [AdoptionRule] { parts.configuration.current.adoption }
  var hooks: Hooks { parts.configuration.current.hooks }
}
