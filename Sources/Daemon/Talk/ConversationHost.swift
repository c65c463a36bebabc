import Lifecycle
import Policy
import Supervision
import WorkerProtocol

/// What a `WorkerConversation` needs of the daemon, all of it about one run of one worker. Tests hand in
/// their own.
protocol ConversationHost: PurgeableOffersHost {
  /// The engine's; nil: the engine doesn't know the worker.
  var state: WorkerState? { get }
  /// Why the worker is in that state; a clause.
  var cause: String { get }
  /// The first process is known. Before that, no process can be shown to be the worker's.
  var hasProcess: Bool { get }
  /// The first process has ended.
  var hasExited: Bool { get }
  /// SIGKILL was sent to all of its processes.
  var isKilled: Bool { get }
  /// A request for memory is under way.
  var isShedding: Bool { get }

  /// Whether a process is one of the worker's.
  func owns(_ pid: Int32) -> Bool
  /// The same, and true of its first process, too, as long as that isn't reaped.
  func ownsSender(_ pid: Int32) -> Bool

  func log(_ priority: DaemonLog.Priority, _ text: String)
  /// Whether it can be asked to free memory, or is expected to answer, has changed.
  func channelsChanged()
  /// `READY=1`.
  func saidReady()
  /// `RELOADING=1`.
  func saidReloading()
  /// `WATCHDOG_USEC=`.
  func saidWatchdogInterval(_ interval: Duration)
  /// `FDSTORE=1`, `FDSTOREREMOVE=1`.
  func store(_ request: StoreRequest)
  /// - Returns: what is wrong with it, for the worker.
  func keep(_ snapshot: WorkerMessage.Snapshot) -> String?
  /// The socket is closed, and its file isn't needed any more.
  func removeSocketFile(_ path: String)
}

/// Numbers of what workers are sent, unique in the daemon's life.
final class MessageNumbers {
  private var last: UInt64 = 0

  func next() -> UInt64 {
    last += 1
    return last
  }
}
