import Lifecycle
import Policy

/// The daemon's implementation for `DaemonEnd`.
final class EndOfDaemon: DaemonEndHost {
  struct Parts {
    let driver: EngineDriver
    let workers: WorkerRegistry
    let returning: ReturningWorkers
    let requests: WorkerRequests
    let externals: ExternalAdoption
    let starter: DependencyStarter
    let recordWriter: WorkerRecordWriter
    let listening: ListeningSockets
    let control: ControlSocket
    let isLaunching: (WorkerID) -> Bool
    let log: DaemonLog
  }

  private let parts: Parts

  init(_ parts: Parts) { self.parts = parts }

  var workers: [EndingWorker] {
    parts.workers.values.map(standing).sorted { $0.id < $1.id }
  }

  private func standing(of runtime: WorkerUnit) -> EndingWorker {
    let state = parts.driver.state.state(of: runtime.id)
    return EndingWorker(
      id: runtime.id, state: state, isAdopting: parts.returning.isAdopting(runtime.id),
      isExternal: runtime.external != nil,
      // A process that is launched after the daemon has left would have no record.
      isBusy: runtime.isBusy || parts.isLaunching(runtime.id),
      restsFrozen: state?.sleeps == true && freezes(runtime.id),
      hasOutlivedKill: parts.driver.state.hasOutlivedKill(runtime.id))
  }

  var unadopted: [(id: WorkerID, pid: Int32)] {
    let writer = parts.recordWriter
    return writer.records.all.filter { record in
      parts.workers[WorkerID(record.name)]?.process == nil && record.external == nil
        && record.life(bootID: writer.bootID) != .hasEnded
    }.map { (WorkerID($0.name), $0.process.pid) }.sorted { $0.0 < $1.0 }
  }

  func freezes(_ id: WorkerID) -> Bool { parts.workers[id]?.process?.cgroup?.freezer != nil }

  var isAdopting: Bool { parts.returning.isUnderWay }

  var isEngineQuiet: Bool { parts.driver.isQuiet }

  func wake(_ id: WorkerID, then answer: @escaping (Answer) -> Void) {
    parts.requests.request(.wake, id, then: answer)
  }

  func release(_ id: WorkerID, then: @escaping (_ failure: String?) -> Void) {
    parts.externals.release(id, then: then)
  }

  func refuseWaitingStarts() { parts.starter.stopWaiting("the daemon is ending") }

  func save(_ id: WorkerID, _ state: WorkerState) {
    if let runtime = parts.workers[id] { parts.recordWriter.save(runtime, state: state) }
  }

  func closeListeners() {
    for runtime in parts.workers.values { parts.listening.closeListeners(of: runtime) }
  }

  func announceEnd(_ text: String) {
    parts.driver.deliverAnswers()
    parts.control.announceEnd(text)
  }

  func log(_ priority: DaemonLog.Priority, _ text: String) { parts.log(priority, text) }
}
