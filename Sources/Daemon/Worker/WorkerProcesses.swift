import Control
import Hibernation
import Lifecycle
import Policy
import PolicyFile
import Supervision

/// What is left of a worker whose root process has ended.
struct WhatIsLeft: Hashable, Sendable {
  /// None of its processes runs.
  var isEmpty: Bool
  /// How many run in addition to the root process.
  var others: Int

  /// Its processes can't be found.
  static let unknown = WhatIsLeft(isEmpty: false, others: 0)
}

/// The outcome of one try to end the remaining processes.
struct Clearing: Hashable, Sendable {
  /// Processes that had left its tree, and were ended.
  var strays = 0
  /// Why some of it may still run; nil: nothing is left.
  var failure: String?
}

/// What threads do to the processes of workers: `KernelWorkerProcesses` really does it; tests provide their own.
///
/// `then` is called on the loop, once. An outcome may also never come: the caller waits only for its patience.
protocol WorkerProcesses: AnyObject {
  /// Opens the memory of all its processes again. Where that can't be done, `then` isn't called.
  func openMemory(
    _ refresh: MemoryRefresh, of name: String, then: @escaping (MemoryRefresh.Outcome) -> Void)

  // MARK: its end

  /// Sends a signal to all of a worker, before or after what else is under way about it.
  func ask(_ process: WorkerProcess, of name: String, by signal: Int32)

  /// Lets it run, so that it can take the signal.
  ///
  /// - Parameter signal: it is sent first; nil: the worker has been asked already.
  func wake(
    _ target: HibernationTarget, _ process: WorkerProcess, askingBy signal: Int32?,
    then: @escaping (_ failure: String?) -> Void)

  /// Sends SIGKILL to all of it.
  func kill(
    _ process: WorkerProcess, of name: String, then: @escaping (_ failure: String?) -> Void)

  /// Finds its processes. `then` may be called before this returns.
  func lookForWhatIsLeft(of process: WorkerProcess, then: @escaping (WhatIsLeft) -> Void)

  /// Ends all that is left, also processes that have left its tree. The root process isn't reaped yet: its
  /// number, by which the others are found, is still its own.
  ///
  /// - Parameters:
  ///   - mark: its DORMOUSE_RUN.
  ///   - notify: its NOTIFY_SOCKET.
  func clear(
    _ process: WorkerProcess, of name: String, mark: String, notify: String?,
    then: @escaping (Clearing) -> Void)

  /// How the root process ended. On the loop: it has ended, and nothing is waited for. Nothing is known of its
  /// memory any more.
  func reap(_ process: WorkerProcess, of name: String) -> WorkerExit

  /// Removes its control group, where it has one, after everything else that was begun about the worker.
  func removeGroup(
    of process: WorkerProcess, _ name: String, then: @escaping (_ failure: String?) -> Void)

  /// The last lines of its log; nil: it has no log, or the log can't be read in time.
  func readLastLines(
    of process: WorkerProcess, _ name: String, then: @escaping ([String]?) -> Void)

  // MARK: processes of other supervisors

  /// Examines what is to be adopted, and reads the policy that the request names.
  func examine(
    _ wanted: AdoptionSpecification, as name: String, in library: PolicyLibrary,
    within limit: Duration,
    then: @escaping (JobOutcome<Result<ExternalProcess, AdoptionRefusal>>) -> Void)

  /// nil: it took too long.
  func look(_ look: RuleLook, then: @escaping (RuleLook.Outcome?) -> Void)

  /// Which rule each of these workers belongs to now; nil: it took too long.
  func chooseRules(
    for workers: [RuledWorker], by matching: RuleMatching,
    then: @escaping ([WorkerID: AdoptionRule]?) -> Void)

  /// Nothing of its memory is known any more: the process is its supervisor's again.
  func forget(_ name: String)
}
