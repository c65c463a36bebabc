import Lifecycle
import Linux
import Policy
import Supervision

/// What a `ShedAttempt` gets of the daemon, for one run of a worker.
final class SheddingOfWorker: ShedHost {
  private let worker: WorkerHandle
  private let process: WorkerProcess
  private let loop: EventLoop
  private let meter: FootprintMeter
  private let scanner: ProcessScanner

  init(
    worker: WorkerHandle, process: WorkerProcess, loop: EventLoop, meter: FootprintMeter,
    scanner: ProcessScanner
  ) {
    self.worker = worker
    self.process = process
    self.loop = loop
    self.meter = meter
    self.scanner = scanner
  }

  var footprint: ByteCount { worker.driver.state.footprint(of: worker.id) }
  var pressure: PressureLevel { worker.driver.state.pressure }
  var isInForeground: Bool { worker.driver.state.state(of: worker.id) == .foreground }

  func measure(then: @escaping (ByteCount?) -> Void) {
    guard let runtime = worker.runtime else { return }
    meter.measure(runtime) { [weak runtime, process] measurement in
      // It may have ended and been started again meanwhile.
      if runtime?.process === process { then(measurement?.footprint) }
    }
  }

  func findTree(then: @escaping (ProcessTree?) -> Void) {
    scanner.withTree(of: process) { [weak runtime = worker.runtime, process] tree in
      if runtime?.process === process { then(tree) }
    }
  }

  func ask(
    on channel: ShedChannel, _ tree: ProcessTree?, ended: @escaping (SideProgram.Phase) -> Void
  ) throws(ShedRefusal) -> (any ShedCommand)? {
    let run = try ShedRequestRun.start(
      channel, worker: process, watch: worker.runtime?.conversation?.pressureListeners, tree: tree)
    guard let command = run.command else { return nil }
    return FollowedProgram(command, loop) { ended(command.phase) }
  }

  func send(_ event: Event) { worker.send(event) }
  func log(_ priority: DaemonLog.Priority, _ text: String) { worker.log(priority, text) }
}

extension FollowedProgram: ShedCommand where Program == SideProgram {
  var pid: Int32? { program.pid }
  var hang: String? { program.hang }
}

/// Carries out the engine's requests for memory. Belongs to the loop's thread.
final class WorkerSheds {
  private let services: Services
  private let driver: EngineDriver
  private let workers: WorkerRegistry
  private let meter: FootprintMeter
  private let scanner: ProcessScanner
  private let liveness: LivenessSupervisor

  init(
    services: Services, driver: EngineDriver, workers: WorkerRegistry,
    meter: FootprintMeter, scanner: ProcessScanner, liveness: LivenessSupervisor
  ) {
    self.services = services
    self.driver = driver
    self.workers = workers
    self.meter = meter
    self.scanner = scanner
    self.liveness = liveness
  }

  func beginShed(_ id: WorkerID, _ kind: Directive.ShedKind, until deadline: Instant) {
    guard let runtime = workers[id], let process = runtime.process else { return }
    runtime.shed?.end()
    let loop = services.loop
    let http =
      runtime.shedOverHTTP
      ?? ShedOverHTTP(loop, liveness.questions(to: runtime, process))
    runtime.shedOverHTTP = http
    let attempt = ShedAttempt(
      id, kind: kind, until: deadline, on: runtime.configuration.shed,
      conversation: runtime.conversation, http: http, timers: loop,
      host: SheddingOfWorker(
        worker: WorkerHandle(runtime: runtime, driver: driver, log: services.log), process: process,
        loop: loop, meter: meter, scanner: scanner))
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
