import Lifecycle
import Policy
import Supervision

/// What a worker's `WakeWatch` gets of the daemon, for one run.
final class WakeOfWorker: WakeHost {
  private weak var runtime: WorkerUnit?
  private let id: WorkerID
  private let services: Services
  private let driver: EngineDriver

  init(_ runtime: WorkerUnit, _ services: Services, _ driver: EngineDriver) {
    self.runtime = runtime
    id = runtime.id
    self.services = services
    self.driver = driver
  }

  var healthChecksWhileAsleep: [AsleepAnswer] {
    runtime?.configuration.healthChecksWhileAsleep ?? []
  }

  func prioritize() { services.hibernation.prioritize(id.name) }
  func send(_ event: Event) { driver.send(event) }
  func log(_ priority: DaemonLog.Priority, _ text: String) {
    services.log(priority, "\(id): \(text)")
  }
  func watchHasEnded() { runtime?.managerWatch = nil }
}

extension WakeWatch {
  /// For a new run of a worker, or an adopted one.
  convenience init(of runtime: WorkerUnit, _ services: Services, _ driver: EngineDriver) {
    self.init(
      runtime.id, services.loop, services.loop, WakeOfWorker(runtime, services, driver))
  }
}

extension WorkerUnit {
  /// The sockets over which the worker talks with us.
  var ownChannels: Set<String> { run.conversation?.paths ?? [] }

  /// Ports at which a connection alone is no reason to wake it.
  var answeredPorts: Set<UInt16> { Set(configuration.healthChecksWhileAsleep.map(\.port)) }

  /// Those that health checks have to themselves: no activity, while it runs.
  var healthPorts: Set<UInt16> {
    Set(configuration.healthChecksWhileAsleep.filter { $0.path != nil }.map(\.port))
  }
}
