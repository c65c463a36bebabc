import Lifecycle
import Policy

/// Carries out the engine's requests for memory, and has what all of them use. Belongs to the loop's thread.
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
    guard let runtime = workers[id], let process = runtime.process else { return }
    runtime.shed?.end()
    let http =
      runtime.shedOverHTTP ?? ShedOverHTTP(loop, liveness.questions(to: runtime, process))
    runtime.shedOverHTTP = http
    let attempt = ShedAttempt(
      kind, until: deadline, of: runtime, process, http: http,
      worker: WorkerHandle(runtime: runtime, driver: driver, log: log), sheds: self)
    runtime.shed = attempt
    attempt.begin()
  }

  func finishShed(_ id: WorkerID) {
    guard let runtime = workers[id], let attempt = runtime.shed else {
      // Nothing was begun; the engine must not wait for ever all the same.
      return driver.send(.shedFinished(id, before: .zero, after: .zero))
    }
    runtime.shed = nil
    attempt.finish()
  }
}
