import Lifecycle
import Policy

/// What the configuration says of a worker's restarts.
struct RestartTerms: Hashable {
  var rules: RestartRules
  var importance = 0
  /// Another supervisor starts it (`adopt`).
  var isExternal = false
}

/// The functions of the daemon that `RestartSupervisor` uses. Tests provide their own.
protocol RestartHost: AnyObject {
  /// The daemon ends, or leaves its workers: none is started any more.
  var isClosing: Bool { get }
  /// Whether a worker of this footprint can be started without raising the pressure.
  func room(for footprint: ByteCount) -> MemoryRoom
  /// nil: the engine doesn't know the worker, or no longer.
  func state(of id: WorkerID) -> WorkerState?
  /// How the last run's process ended.
  func lastExit(of id: WorkerID) -> ExitStatus?
  /// nil: there is no such worker.
  func terms(of id: WorkerID) -> RestartTerms?
  /// Starts it after the workers that it depends on.
  func start(_ id: WorkerID, then answer: @escaping (Answer) -> Void)
  func log(_ priority: DaemonLog.Priority, _ text: String)
}
