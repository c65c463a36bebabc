import Lifecycle
import Linux
import Policy
import Supervision

/// What a `ShedAttempt` gets of the daemon, for one run of a worker.
private final class SheddingOfWorker: ShedHost {
  private unowned let daemon: Daemon
  private weak var runtime: WorkerUnit?
  private let process: WorkerProcess
  private let id: WorkerID

  init(_ daemon: Daemon, _ runtime: WorkerUnit, _ process: WorkerProcess) {
    self.daemon = daemon
    self.runtime = runtime
    self.process = process
    id = runtime.id
  }

  var footprint: ByteCount { daemon.engine.footprint(of: id) }
  var pressure: PressureLevel { daemon.engine.pressure }

  func measure(then: @escaping (ByteCount?) -> Void) {
    guard let runtime else { return }
    daemon.senses.meter.measure(runtime) { [weak runtime, process] measurement in
      // It may have ended and been started again meanwhile.
      if runtime?.process === process { then(measurement?.footprint) }
    }
  }

  func findTree(then: @escaping (ProcessTree?) -> Void) {
    daemon.senses.scanner.withTree(of: process) { [weak runtime, process] tree in
      if runtime?.process === process { then(tree) }
    }
  }

  func ask(
    on channel: ShedChannel, _ tree: ProcessTree?, ended: @escaping (SideProgram.Phase) -> Void
  ) throws(ShedRefusal) -> (any ShedCommand)? {
    let run = try ShedRequestRun.start(
      channel, worker: process, watch: runtime?.conversation?.pressureListeners, tree: tree)
    guard let command = run.command else { return nil }
    return FollowedProgram(command, daemon.loop) { ended(command.phase) }
  }

  func send(_ event: Event) { daemon.driver.send(event) }
  func log(_ priority: DaemonLog.Priority, _ text: String) {
    daemon.log(priority, "\(id): \(text)")
  }
}

extension FollowedProgram: ShedCommand {
  var pid: Int32? { program.pid }
  var hang: String? { program.hang }
}

/// Carries out the engine's requests for memory. Belongs to the loop's thread.
final class WorkerSheds {
  private unowned let daemon: Daemon

  init(_ daemon: Daemon) { self.daemon = daemon }

  func beginShed(_ id: WorkerID, _ kind: Directive.ShedKind, until deadline: Instant) {
    guard let runtime = daemon.workers[id], let process = runtime.process else { return }
    runtime.shed?.end()
    let loop = daemon.loop
    let http =
      runtime.shedOverHTTP
      ?? ShedOverHTTP(loop, daemon.senses.liveness.host(for: runtime, process))
    runtime.shedOverHTTP = http
    let attempt = ShedAttempt(
      id, kind, until: deadline, on: runtime.configuration.shed, runtime.conversation, http, loop,
      SheddingOfWorker(daemon, runtime, process))
    runtime.shed = attempt
    attempt.begin()
  }

  func finishShed(_ id: WorkerID) {
    guard let runtime = daemon.workers[id], let attempt = runtime.shed else {
      // Nothing was begun; the engine must not wait for ever all the same.
      return daemon.driver.send(.shedFinished(id, before: .zero, after: .zero))
    }
    runtime.shed = nil
    attempt.finish()
  }
}
