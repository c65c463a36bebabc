import Hibernation
import Lifecycle
import Linux
import Policy
import Supervision

/// The daemon's implementation for a worker's `WakeWatch`, for one run.
final class WakeOfWorker: WakeHost {
  private let worker: WorkerHandle
  private let hibernation: HibernationService

  init(_ worker: WorkerHandle, _ hibernation: HibernationService) {
    self.worker = worker
    self.hibernation = hibernation
  }

  var healthChecksWhileAsleep: [AsleepAnswer] {
    worker.runtime?.configuration.healthChecksWhileAsleep ?? []
  }

  func prioritize() { hibernation.prioritize(worker.id.name) }
  func send(_ event: Event) { worker.send(event) }
  func log(_ priority: DaemonLog.Priority, _ text: String) { worker.log(priority, text) }
  func watchHasEnded() { worker.runtime?.managerWatch = nil }
}

extension WakeWatch {
  /// For a new run of a worker, or an adopted one.
  convenience init(of runtime: WorkerUnit, _ services: Services, _ driver: EngineDriver) {
    let worker = WorkerHandle(runtime: runtime, driver: driver, log: services.log)
    self.init(
      runtime.id, watches: services.loop, timers: services.loop,
      host: WakeOfWorker(worker, services.hibernation))
  }
}

extension WorkerUnit {
  /// The sockets between the worker and the daemon.
  var ownChannels: Set<String> { run.conversation?.paths ?? [] }

  /// Ports at which a connection alone is no reason to wake it.
  var answeredPorts: Set<UInt16> { Set(configuration.healthChecksWhileAsleep.map(\.port)) }

  /// Ports that only health checks use: they aren't activity while it runs.
  var healthPorts: Set<UInt16> {
    Set(configuration.healthChecksWhileAsleep.filter { $0.path != nil }.map(\.port))
  }
}

extension PreforkMasters {
  /// The children of a prefork server run; its masters follow.
  func releaseLater(about id: WorkerID, by services: Services, in wait: Duration = grace) {
    guard areHeld else { return }
    services.loop.after(wait) { [services, weak self] in
      guard let self else { return }
      services.mechanics.submit(about: id.name, isUrgent: true) { self.release() }
    }
  }
}
