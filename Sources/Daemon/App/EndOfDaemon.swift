import Lifecycle
import Policy

/// What `DaemonEnd` gets of the daemon.
final class EndOfDaemon: DaemonEndHost {
  private unowned let daemon: Daemon

  init(_ daemon: Daemon) { self.daemon = daemon }

  var workers: [EndingWorker] {
    daemon.workers.values.map(standing).sorted { $0.id < $1.id }
  }

  private func standing(of runtime: WorkerUnit) -> EndingWorker {
    let state = daemon.engine.state(of: runtime.id)
    return EndingWorker(
      id: runtime.id, state: state, isAdopting: daemon.survivors.isAdopting(runtime.id),
      isExternal: runtime.external != nil, isBusy: runtime.isBusy,
      restsFrozen: state?.sleeps == true && runtime.process?.cgroup?.freezer != nil)
  }

  var isAdopting: Bool { daemon.survivors.isUnderWay }

  func wake(_ id: WorkerID, then answer: @escaping (Answer) -> Void) {
    daemon.request(.wake, id, then: answer)
  }

  func release(_ id: WorkerID, then: @escaping (_ failure: String?) -> Void) {
    daemon.externals.release(id, then: then)
  }

  func refuseWaitingStarts() { daemon.dependencyStarter.stopWaiting("the daemon is ending") }

  func save(_ id: WorkerID, _ state: WorkerState) {
    if let runtime = daemon.workers[id] { daemon.saveRecord(runtime, state: state) }
  }

  func closeListeners() {
    for runtime in daemon.workers.values { daemon.listening.closeListeners(of: runtime) }
  }

  func announceEnd(_ text: String) { daemon.server?.announceEnd(text) }

  func log(_ priority: DaemonLog.Priority, _ text: String) { daemon.log(priority, text) }
}
