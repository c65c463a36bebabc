import Lifecycle
import Policy
import PolicyFile

// These functions remove and change the daemon's workers, as a configuration that was read again
// declares them.
extension ConfigurationReloader {
  private var listening: ListeningSockets { supervision.listening }

  /// Whether the worker has failed: it ended with a failure, or wasn't started because another
  /// worker failed. A worker that waits for memory hasn't.
  func hasFailed(_ id: WorkerID) -> Bool {
    if case .pressure = driver.state.snapshot(of: id)?.cause { return false }
    return supervision.restarts.hasFailed(id)
  }

  /// Stops a worker if it runs, and removes it when it has ended. Until then the registry has it as
  /// undeclared.
  func remove(_ id: WorkerID) {
    undeclare(id)
    // Another program supervises an external worker, so it stays adopted.
    if workers[id]?.external != nil { return }
    if driver.state.state(of: id)?.isAlive == true {
      supervision.starter.requests.request(.stop, id) { _ in }
    }
    // The request may have ended the worker at once.
    if let worker = workers[id] { listening.closeListeners(of: worker) }
    driver.send(.removed(id))
    if driver.state.state(of: id) == nil { supervision.removeWorker(id) }
  }

  /// Marks a worker that the configuration no longer declares. It stays until `remove`.
  func undeclare(_ id: WorkerID) {
    supervision.forgetPlans(of: id)
    workers[id]?.isDeclared = false
  }

  /// Applies a worker's new configuration. The worker is declared from now on. Its policy,
  /// importance and shed channel apply at once, the other keys at its next launch.
  func apply(_ configuration: WorkerConfiguration) {
    let id = WorkerID(configuration.name)
    guard let worker = workers[id] else { return }
    let wasDeclared = worker.isDeclared
    worker.configuration = configuration
    worker.environment = declared.environment(of: configuration)
    worker.isDeclared = true
    supervision.didChangeRestartRules(id)
    // A worker that was removed and hasn't ended yet isn't removed when it ends.
    driver.send(
      wasDeclared ? .profileChanged(id, worker.profile) : .added(id, worker.profile))
    guard driver.state.state(of: id)?.isAlive == true else { return listening.relisten(worker) }
    // The stop of the worker is cancelled, or it starts again after its end.
    if !wasDeclared, worker.external == nil, configuration.autostart {
      supervision.starter.start(id, .restart, occasion: .autostart) { _ in }
    }
  }

  /// Applies the machine's policy to a worker. Values that `run` or `adopt` has chosen override it.
  func setPolicy(_ policy: LifecyclePolicy, of id: WorkerID) {
    guard let worker = workers[id] else { return }
    do throws(SettingError) {
      worker.configuration.policy = try worker.chosenPolicy(over: policy)
      // The chosen values contradict the new policy, so the worker keeps its policy.
    } catch { return }
    driver.send(.profileChanged(id, worker.profile))
  }
}
