import Control
import Hibernation
import Lifecycle
import Policy
import PolicyFile
import Supervision

/// The remaining processes of a worker whose root process has ended.
struct RemainingProcesses: Hashable, Sendable {
  /// No process of the worker runs.
  var isEmpty: Bool
  /// The number of processes that run in addition to the root process.
  var others: Int

  /// The worker's processes can't be found.
  static let unknown = RemainingProcesses(isEmpty: false, others: 0)
}

/// The outcome of one attempt to end the remaining processes.
struct Clearing: Hashable, Sendable {
  /// The number of processes that had left the worker's tree and were killed.
  var escaped = 0
  /// Why a process may still run; nil: none is left.
  var failure: String?
}

/// What other threads do to the processes of workers. `KernelWorkerProcesses` is the real
/// implementation; tests have a fake.
///
/// `then` is called on the loop, once. It may also never be called, so the caller has a timeout.
protocol WorkerProcesses {
  /// Opens the memory of all processes of the worker again. If that fails, `then` isn't called.
  func openMemory(
    _ refresh: MemoryRefresh, of name: String, then: @escaping (MemoryRefresh.Outcome) -> Void)

  // MARK: end

  /// Sends a signal to all processes of the worker, before or after other jobs about it.
  func ask(_ process: WorkerProcess, of name: String, by signal: Int32)

  /// Lets the worker run, so that it can handle the signal.
  ///
  /// - Parameters:
  ///   - missing: the memory that is in the image of a trim.
  ///   - signal: sent first; nil: the worker has been asked to end already.
  func wake(
    _ target: HibernationTarget, _ process: WorkerProcess, missing: MissingBytes?,
    askingBy signal: Int32?, then: @escaping (_ failure: String?) -> Void)

  /// Sends SIGKILL to all processes of the worker.
  func kill(
    _ process: WorkerProcess, of name: String, then: @escaping (_ failure: String?) -> Void)

  /// Counts the processes of the worker. `then` may be called before this returns.
  func findRemainingProcesses(
    of process: WorkerProcess, then: @escaping (RemainingProcesses) -> Void)

  /// Kills all remaining processes, including those that have left the worker's tree. The root
  /// process hasn't been reaped yet, so its pid, by which the others are found, can't be that of
  /// another process.
  ///
  /// - Parameters:
  ///   - mark: the worker's DORMOUSE_RUN.
  ///   - notify: the worker's NOTIFY_SOCKET.
  func clear(
    _ process: WorkerProcess, of name: String, mark: String, notify: String?,
    then: @escaping (Clearing) -> Void)

  /// Reaps the root process, which has ended, and returns how it ended. Called on the loop, since
  /// it doesn't wait. The worker's memory is forgotten.
  func reap(_ process: WorkerProcess, of name: String) -> WorkerExit

  /// Removes the worker's cgroup, if it has one, after all earlier jobs about the worker.
  func removeGroup(
    of process: WorkerProcess, _ name: String, then: @escaping (_ failure: String?) -> Void)

  /// Reads the last lines of the worker's log; nil: it has no log, or the log can't be read in
  /// time.
  func readLastLines(
    of process: WorkerProcess, _ name: String, then: @escaping ([String]?) -> Void)

  // MARK: processes of other supervisors

  /// Examines the process that a request wants to adopt, and reads the policy that the request
  /// names.
  func examine(
    _ wanted: AdoptionSpecification, as name: String, in library: PolicyLibrary,
    within limit: Duration,
    then: @escaping (JobOutcome<Result<ExternalProcess, AdoptionRefusal>>) -> Void)

  /// Scans for processes that match rules of adoption. `then` gets nil if that took too long.
  func scan(_ scan: RuleScan, then: @escaping (RuleScan.Outcome?) -> Void)

  /// Finds the current rule of each of these workers. `then` gets nil if that took too long.
  func chooseRules(
    for workers: [RuledWorker], by matching: RuleMatching,
    then: @escaping ([WorkerID: AdoptionRule]?) -> Void)

  /// Forgets the worker's memory: the process belongs to its supervisor again.
  func forget(_ name: String)
}
