import Lifecycle
import Policy
import PolicyFile

/// Adds, removes and changes the daemon's workers, as a configuration that was read again wants it. Belongs to the
/// loop's thread.
struct DeclaredChanges {
  let driver: EngineDriver
  let workers: WorkerRegistry
  let declared: DeclaredWorkers
  let requests: WorkerRequests
  let restarts: RestartSupervisor
  let starter: DependencyStarter
  let supervision: WorkerSupervision
  let listening: ListeningSockets

  /// nil: there is no such worker.
  func known(_ id: WorkerID) -> KnownWorker? {
    workers[id].map {
      KnownWorker(
        configuration: $0.configuration, isDeclared: $0.isDeclared,
        isRuled: $0.external?.rule != nil)
    }
  }

  /// It has ended in a failure, or wasn't started because another one has, and isn't waited for.
  func hasFailed(_ id: WorkerID) -> Bool {
    if case .pressure = driver.state.snapshot(of: id)?.cause { return false }
    return restarts.hasFailed(id)
  }

  /// Adds it, and opens its sockets.
  func introduce(_ configuration: WorkerConfiguration) {
    declared.addDeclared(configuration)
    if let worker = workers[WorkerID(configuration.name)] { listening.relisten(worker) }
  }

  /// Those of them that start by themselves, after those that they need. Earlier failures of corrected ones don't count.
  func startAutomatically(added: [WorkerConfiguration], corrected: [WorkerConfiguration]) {
    for worker in corrected { supervision.personAsks(.start, WorkerID(worker.name)) }
    declared.startAutomatically(added + corrected)
    starter.advance()
  }

  /// Stops it, where it runs, and forgets it when it has ended. Until then the registry has it, undeclared.
  func remove(_ id: WorkerID) {
    undeclare(id)
    // Another program supervises it: it stays adopted.
    if workers[id]?.external != nil { return }
    if driver.state.state(of: id)?.isAlive == true { requests.request(.stop, id) { _ in } }
    // The request may have ended it at once.
    if let worker = workers[id] { listening.closeListeners(of: worker) }
    driver.send(.removed(id))
    if driver.state.state(of: id) == nil { supervision.removeWorker(id) }
  }

  /// The configuration no longer declares it; it stays until `remove`.
  func undeclare(_ id: WorkerID) {
    supervision.forgetPlans(of: id)
    workers[id]?.isDeclared = false
  }

  /// Its configuration from now on. It is declared now, if it wasn't.
  func apply(_ configuration: WorkerConfiguration, of id: WorkerID) {
    guard let worker = workers[id] else { return }
    let wasDeclared = worker.isDeclared
    worker.configuration = configuration
    worker.environment = declared.environment(of: configuration)
    worker.isDeclared = true
    supervision.restartRulesChanged(id)
    // One that was removed, and hasn't ended yet, isn't forgotten then.
    driver.send(
      wasDeclared ? .profileChanged(id, worker.profile) : .added(id, worker.profile))
    guard driver.state.state(of: id)?.isAlive == true else {
      return listening.relisten(worker)
    }
    // Its end is called off, or it starts again after it.
    if !wasDeclared, worker.external == nil, configuration.autostart {
      starter.start(id, .restart, occasion: .autostart) { _ in }
    }
  }

  /// The machine's policy. Values that `run` or `adopt` has chosen are laid over it.
  func setPolicy(_ policy: LifecyclePolicy, of id: WorkerID) {
    guard let worker = workers[id] else { return }
    do throws(SettingError) {
      worker.configuration.policy = try worker.chosenPolicy(over: policy)
    } catch { return }  // They contradict the new policy: the worker keeps its own.
    driver.send(.profileChanged(id, worker.profile))
  }
}
