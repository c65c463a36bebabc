import Lifecycle
import Policy

/// Carries out the engine's requests for memory, and has what all of them share. It belongs to the
/// event loop's thread.
final class WorkerSheds {
  let loop: any Timers & DescriptorWatches
  let processes: any Processes
  let meter: FootprintMeter
  let scanner: ProcessScanner
  private let driver: EngineDriver
  private let workers: WorkerRegistry
  private let liveness: LivenessSupervisor
  private let log: DaemonLog

  init(
    loop: any Timers & DescriptorWatches, processes: any Processes, driver: EngineDriver,
    workers: WorkerRegistry, meter: FootprintMeter, scanner: ProcessScanner,
    liveness: LivenessSupervisor, log: DaemonLog
  ) {
    self.loop = loop
    self.processes = processes
    self.driver = driver
    self.workers = workers
    self.meter = meter
    self.scanner = scanner
    self.liveness = liveness
    self.log = log
  }

  func beginShed(_ id: WorkerID, _ kind: Directive.ShedKind, until deadline: Instant) {
    guard let worker = workers[id], let process = worker.process else { return }
    worker.shed?.end()
    let http =
      worker.shedOverHTTP ?? ShedOverHTTP(loop, liveness.questions(to: worker, process))
    worker.shedOverHTTP = http
    let attempt = ShedAttempt(
      kind, until: deadline, of: worker, process, http: http,
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
