import Lifecycle
import Policy

// What is known of a worker's runs and restarts.

extension RestartSupervisor {
  /// How its last runs ended, the latest last; nil: there is no such worker.
  func exits(of id: WorkerID) -> [ExitRecord]? { histories[id]?.exits }

  /// Restarts since a person, or the daemon at its start, started it.
  func restarts(of id: WorkerID) -> Int { histories[id]?.restarts ?? 0 }

  /// `.zero`: an earlier daemon launched it.
  func launchedAt(of id: WorkerID) -> Instant { histories[id]?.launchedAt ?? .zero }

  /// How its last run ended; nil: it hasn't ended since it was asked to start.
  func lastEnd(of id: WorkerID) -> DependencyStanding.End? { histories[id]?.lastEnd }

  /// When it is started again; nil: it isn't.
  func plan(of id: WorkerID) -> RestartPlan? { histories[id]?.plan }

  /// Why it isn't started any more; a clause.
  func problem(of id: WorkerID) -> String? { histories[id]?.problem }

  /// That is because it has ended too often.
  func hasGivenUp(_ id: WorkerID) -> Bool { histories[id]?.hasGivenUp == true }

  /// It has ended in a failure, or wasn't started because another worker has, and no request stopped it.
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

  /// The environment of its next launch: `base`, and what there is to know of the run before. What `base`
  /// says of that is the daemon's own, and is left out.
  func environment(of id: WorkerID, over base: [String: String]) -> [String: String] {
    base.filter { !RunHistory.variables.contains($0.key) }
      .merging(histories[id]?.environment ?? [:]) { $1 }
  }

  /// The end of a sentence about a start that failed.
  func lastWords(of id: WorkerID) -> String {
    guard driver.state.state(of: id) == .terminated,
      let words = histories[id]?.exits.last?.lastWords
    else { return "" }
    return "; last output: \(words) (`dormouse logs \(id)` shows all)"
  }
}
