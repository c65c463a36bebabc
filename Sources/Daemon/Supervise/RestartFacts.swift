import Lifecycle
import Policy

// What is recorded about a worker's runs and restarts.

extension RestartSupervisor {
  /// When the worker's run was launched; `.zero` if an earlier daemon launched it.
  func launchedAt(of id: WorkerID) -> Instant { histories[id]?.launchedAt ?? .zero }

  /// Whether the worker has failed: it ended with a failure, or wasn't started because another
  /// worker failed; and no request stopped it.
  func hasFailed(_ id: WorkerID) -> Bool {
    guard driver.state.state(of: id) == .terminated, let history = histories[id], !history.isToStop
    else { return false }
    switch history.plan {
    case .waitingForMemory: return false
    case .backingOff: return true
    case nil:
      return history.problem != nil
        || history.lastEnd.map { !$0.succeeded && !$0.wasStopped } == true
    }
  }

  /// The environment of the worker's next launch: `base` and the facts about its last run.
  /// Variables about a last run in `base` belong to the daemon's own last run, and are left out.
  func environment(of id: WorkerID, over base: [String: String]) -> [String: String] {
    base.filter { !RunHistory.variables.contains($0.key) }
      .merging(histories[id]?.environment ?? [:]) { $1 }
  }

  /// The last output of a worker that has ended, as the end of a sentence about a failed start;
  /// empty if there is none.
  func lastOutput(of id: WorkerID) -> String {
    guard driver.state.state(of: id) == .terminated,
      let line = histories[id]?.exits.last?.lastWords
    else { return "" }
    return "; last output: \(line) (`dormouse logs \(id)` shows all)"
  }
}
