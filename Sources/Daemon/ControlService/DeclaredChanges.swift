import Lifecycle
import Policy
import PolicyFile

/// What `DeclaredChanges` needs of the daemon. Tests hand in their own.
protocol DeclaredChangeHost: AnyObject {
  /// All of it: what the configuration adds is laid over the daemon's own.
  func environment(of configuration: WorkerConfiguration) -> [String: String]
  func stop(_ id: WorkerID)
  /// One that hasn't ended: its end is called off, or it starts again after it.
  func startAgain(_ id: WorkerID)
  /// Nothing of what was planned for it happens.
  func forgetPlans(of id: WorkerID)
  /// There is no worker of that name any more.
  func removeWorker(_ id: WorkerID)
  func rulesHaveChanged(of id: WorkerID)
  func closeListeners(of runtime: WorkerUnit)
  /// As its configuration has them now.
  func listenAgain(for runtime: WorkerUnit)
}

/// Removes and changes the workers that the daemon has, as a configuration that was read again wants it. Belongs to
/// the loop's thread.
final class DeclaredChanges {
  private let driver: EngineDriver
  private let workers: WorkerRegistry
  private unowned let host: any DeclaredChangeHost

  /// The host isn't kept alive.
  init(driver: EngineDriver, workers: WorkerRegistry, host: any DeclaredChangeHost) {
    self.driver = driver
    self.workers = workers
    self.host = host
  }

  /// nil: there is no such worker.
  func known(_ id: WorkerID) -> KnownWorker? {
    workers[id].map {
      KnownWorker(
        configuration: $0.configuration, isDeclared: $0.isDeclared,
        isRuled: $0.external?.rule != nil)
    }
  }

  /// Stops it, where it runs, and forgets it when it has ended. Until then the registry has it, undeclared.
  func remove(_ id: WorkerID) {
    undeclare(id)
    // Another program supervises it: it stays adopted.
    if workers[id]?.external != nil { return }
    if driver.state.state(of: id)?.isAlive == true { host.stop(id) }
    // The request may have ended it at once.
    if let runtime = workers[id] { host.closeListeners(of: runtime) }
    driver.send(.removed(id))
    if driver.state.state(of: id) == nil { host.removeWorker(id) }
  }

  /// The configuration no longer declares it; it stays until `remove`.
  func undeclare(_ id: WorkerID) {
    host.forgetPlans(of: id)
    workers[id]?.isDeclared = false
  }

  /// Its configuration from now on. It is declared now, if it wasn't.
  func apply(_ configuration: WorkerConfiguration, of id: WorkerID) {
    guard let runtime = workers[id] else { return }
    let wasDeclared = runtime.isDeclared
    runtime.configuration = configuration
    runtime.environment = host.environment(of: configuration)
    runtime.isDeclared = true
    host.rulesHaveChanged(of: id)
    // One that was removed, and hasn't ended yet, isn't forgotten then.
    driver.send(
      wasDeclared ? .profileChanged(id, runtime.profile) : .added(id, runtime.profile))
    guard driver.state.state(of: id)?.isAlive == true else {
      return host.listenAgain(for: runtime)
    }
    if !wasDeclared, runtime.external == nil, configuration.autostart { host.startAgain(id) }
  }

  /// The machine's policy. Values that `run` or `adopt` has chosen are laid over it.
  func setPolicy(_ policy: LifecyclePolicy, of id: WorkerID) {
    guard let runtime = workers[id] else { return }
    do throws(SettingError) {
      runtime.configuration.policy = try runtime.chosenPolicy(over: policy)
    } catch { return }  // They contradict the new policy: the worker keeps its own.
    driver.send(.profileChanged(id, runtime.profile))
  }
}
