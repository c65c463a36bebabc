import Lifecycle
import Policy

@testable import Daemon

/// The host of the real `DaemonEnd`. It complains of what must never be left.
final class ShellDaemonEnd: DaemonEndHost {
  private unowned let world: ShellWorld
  /// Workers that couldn't be woken before the daemon left: that was logged.
  private var failedWakes: Set<WorkerID> = []
  /// What is frozen sleeps on without a daemon; what is stopped by signal doesn't.
  private var hasFreezer: Bool { world.hasFreezer }

  init(_ world: ShellWorld) { self.world = world }

  /// What must not be so when the daemon has ended; nil: nothing.
  var omission: String? {
    for run in world.runs.all where run.body != .dead {
      guard world.phase.isLeaving else {
        return "\(run.id) outlives the daemon, which was to stop it (\(run.body.rawValue))"
      }
      if run.body == .running || run.body == .unverifiable { continue }
      // SIGKILL failed, and the daemon doesn't wait for it: the next one finds the process as it is.
      if world.driver.state.hasOutlivedKill(run.id) { continue }
      if !hasFreezer, !failedWakes.contains(run.id) {
        return "\(run.id) is left without a daemon, and nothing keeps it (\(run.body.rawValue))"
      }
      // A record that is older than the process is caught by recovery; none would lose it.
      if world.saved.known[run.id.name] == nil { return "\(run.id) is left without a record" }
    }
    return nil
  }

  // MARK: the end's host

  var workers: [EndingWorker] {
    world.workers.values.map(standing).sorted { $0.id < $1.id }
  }

  private func standing(of runtime: WorkerUnit) -> EndingWorker {
    let state = world.driver.state.state(of: runtime.id)
    return EndingWorker(
      id: runtime.id, state: state, isAdopting: world.returning.isAdopting(runtime.id),
      isExternal: runtime.external != nil,
      isBusy: runtime.isBusy || world.workers.launching.contains(runtime.id),
      restsFrozen: state?.sleeps == true && hasFreezer,
      hasOutlivedKill: world.driver.state.hasOutlivedKill(runtime.id))
  }

  func freezes(_ id: WorkerID) -> Bool { hasFreezer }

  var isAdopting: Bool { world.returning.isUnderWay }
  var isEngineQuiet: Bool { world.driver.isQuiet }
  /// Each process of the simulation can be looked at.
  let unadopted: [(id: WorkerID, pid: Int32)] = []

  func wake(_ id: WorkerID, then answer: @escaping (Answer) -> Void) {
    world.requests.request(.wake, id) { [self] in
      if $0.code != .done { failedWakes.insert(id) }
      answer($0)
    }
  }

  func release(_ id: WorkerID, then: @escaping (_ failure: String?) -> Void) {
    world.externals.release(id, then: then)
  }

  func refuseWaitingStarts() { world.supervision.starter.stopWaiting("the daemon is ending") }

  func save(_ id: WorkerID, _ state: WorkerState) {
    if let runtime = world.workers[id] { world.save(runtime, state) }
  }

  func closeListeners() {}

  func announceEnd(_ text: String) {
    world.driver.deliverAnswers()
    world.clients.announceEnd()
  }

  func log(_ priority: DaemonLog.Priority, _ text: String) {}
}
