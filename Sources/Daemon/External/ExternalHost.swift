import Control
import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision

/// The functions of the daemon that `ExternalAdoption` uses. Tests provide their own.
protocol ExternalHost: AnyObject {
  /// The daemon ends, or leaves its workers.
  var isClosing: Bool { get }
  /// Also true of one that is being adopted.
  func isAlive(_ id: WorkerID) -> Bool
  /// A wrapper has a worker of this name.
  func isWrapped(_ id: WorkerID) -> Bool
  func owner(of pid: Int32) -> WorkerID?
  /// Looks at what is to be adopted, on another thread. Calls back once, later.
  func examine(
    _ wanted: AdoptionSpecification, as name: String, within limit: Duration,
    then: @escaping (JobOutcome<Result<ExternalProcess, AdoptionRefusal>>) -> Void)
  /// Holds its process, and listens for its end.
  func attach(_ found: ExternalProcess, to runtime: WorkerUnit) throws
  /// The registry has it.
  func wasAdded(_ id: WorkerID)
  /// The engine's answer.
  func wake(_ id: WorkerID, then answer: @escaping (Answer) -> Void)
  /// The daemon holds nothing of its process any more.
  func letGo(of runtime: WorkerUnit)
  /// There is no worker of that name any more.
  func remove(_ id: WorkerID)
  /// A worker of the configuration, which the daemon doesn't have.
  func introduce(_ configuration: WorkerConfiguration)
  /// The process that represented a cgroup has ended, and others of it live on (a server that has replaced
  /// itself): the oldest represents it from now on. nil: none is left.
  func attachSuccessor(to runtime: WorkerUnit) -> Successor?
  /// For the next daemon.
  func save(_ runtime: WorkerUnit, _ state: WorkerState)
  /// The operator has released a process that a rule had adopted.
  func wasReleased(_ process: ProcessIdentity, from rule: String)
  func log(_ priority: DaemonLog.Priority, _ text: String)
}

/// A process that represents a cgroup.
struct Successor: Hashable {
  var pid: Int32
  var cgroup: String
}
