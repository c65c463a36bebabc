import Lifecycle

@testable import Daemon

/// Checks what must never be left when the daemon has ended.
final class ShellDaemonEnd {
  private unowned let world: ShellWorld
  /// The requests to wake a worker that arrived while the daemon was leaving.
  private var wakes: [Request.ID: WorkerID] = [:]
  /// Workers that couldn't be woken before the daemon left, which was logged.
  private var failedWakes: Set<WorkerID> = []

  init(_ world: ShellWorld) { self.world = world }

  func record(_ event: Event, _ directives: [Directive]) {
    if case .request(let request) = event, request.verb == .wake, world.phase.isLeaving {
      wakes[request.id] = request.worker
    }
    for case .answer(let request, let answer) in directives where answer.code != .done {
      if let id = wakes[request] { failedWakes.insert(id) }
    }
  }

  /// What is wrong now that the daemon has ended; nil: nothing.
  var omission: String? {
    for run in world.runs.all where run.body != .dead {
      guard world.phase.isLeaving else {
        return "\(run.id) outlives the daemon, which was to stop it (\(run.body.rawValue))"
      }
      if run.body == .running || run.body == .unverifiable { continue }
      // SIGKILL failed, and the daemon doesn't wait for the process. The next daemon finds it as it
      // is.
      if world.driver.state.hasOutlivedKill(run.id) { continue }
      // A frozen worker sleeps on without a daemon; one that is stopped by a signal doesn't.
      if !world.hasFreezer, !failedWakes.contains(run.id) {
        return "\(run.id) is left without a daemon, and nothing keeps it (\(run.body.rawValue))"
      }
      // A record that is older than the process is detected by recovery; without a record, the
      // worker would be lost.
      if world.saved.lastSaved[run.id.name] == nil { return "\(run.id) is left without a record" }
    }
    return nil
  }
}
