import Lifecycle
import Policy

/// Carries out the engine's requests for memory, and has what all of them share. It belongs to the
/// event loop's thread.
struct WorkerSheds {
  let loop: any Timers & DescriptorWatches
  let processes: any Processes
  let driver: EngineDriver
  let workers: WorkerRegistry
  let meter: FootprintMeter
  let scanner: ProcessScanner
  let liveness: LivenessSupervisor
  let log: DaemonLog

  func beginShed(_ id: WorkerID, _ kind: Directive.ShedKind, until deadline: Instant) {
    guard let worker = workers[id], let process = worker.process else { return }
    worker.shed?.end()
    let attempt = ShedAttempt(
      kind, until: deadline, of: worker, process,
      handle: WorkerHandle(worker: worker, driver: driver, log: log), sheds: self)
    worker.shed = attempt
    attempt.begin()
  }

  func finishShed(_ id: WorkerID) {
    guard let worker = workers[id], let attempt = worker.shed else {
      // No request was begun. The engine is answered anyway, because it would wait for ever.
      return driver.send(.shedFinished(id, before: .zero, after: .zero))
    }
    worker.shed = nil
    attempt.finish()
  }
}
