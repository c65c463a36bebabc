import Hibernation
import Lifecycle
import Policy
import Supervision

@testable import Daemon

// Carries out the engine's directives, as `DirectiveExecution` does.

extension ShellWorld {
  func execute(_ directive: Directive) {
    switch directive {
    case .launch(let id): launching.launcher.launch(id)
    case .suspend(let id):
      if let reason = ending.refusalToSuspend(id) ?? externals.refusalToSuspend(id) {
        return driver.send(.suspendFailed(id, reason))
      }
      workers[id]?.sleep?.suspend()
    case .hibernate(let id): workers[id]?.sleep?.hibernate()
    case .resume(let id): workers[id]?.sleep?.resume()
    case .trim(let id): workers[id]?.sleep?.trim()
    case .fill(let id): workers[id]?.sleep?.fill()
    case .inspect(let id):
      if let sleep = workers[id]?.sleep {
        sleep.inspect()
      } else {
        driver.send(.exited(id, .unknown))
      }
    case .terminate(let id): ends.terminate(id)
    case .abort(let id): ends.terminate(id, by: 6)
    case .kill(let id): ends.kill(id)
    case .shed(let id, let kind, let deadline): shedding.sheds.beginShed(id, kind, until: deadline)
    case .finishShed(let id): shedding.sheds.finishShed(id)
    case .checkSafePoint(let id): answer(id, .milliseconds(10)) { .fileLocks(id, held: 0) }
    case .checkWatchdog(let id): answer(id, .milliseconds(10)) { .watchdogSeen(id, at: nil) }
    case .purge(let id): answer(id, .milliseconds(20)) { .purged(id, freed: .megabytes(1)) }
    case .measure(let id): answer(id, .milliseconds(20)) { .footprint(id, .megabytes(5)) }
    case .expireTask(let id, let task): answer(id, .seconds(1)) { .taskEnded(id, task: task) }
    case .transition(let transition): report(transition)
    case .pressureChanged(_, let level, _):
      if level == .normal { supervision.restarts.startFittingWorkers() }
    case .answer, .report, .wouldHave, .watchdogMissed, .overLimit, .leakSuspected, .willTerminate,
      .willNotTerminate,
      .protectedLeft, .terminatesNone:
      break
    }
  }

  private func report(_ transition: Transition) {
    liveness.record(transition)
    guard let worker = workers[transition.worker] else { return }
    recordWriter.save(worker, state: transition.to)
    supervision.record(transition)
  }

  /// Sends an event about the current run after a while, if the run still exists then.
  private func answer(_ id: WorkerID, _ longest: Duration, _ event: @escaping () -> Event) {
    guard let run = run(of: id), !chance(2) else { return }
    after(longest) { [unowned self] in if self.run(of: id) === run { driver.send(event()) } }
  }
}

/// The real `WorkerSheds` over simulated measurements and scans, whose outcomes are delayed, late,
/// lost or reported twice. A signal may have an effect or not.
final class ShellSheds: FootprintSource {
  private unowned let world: ShellWorld
  private lazy var meter = FootprintMeter(
    clock: world.clock, driver: world.driver, workers: world.workers, source: self,
    log: { _, _ in })
  private lazy var scanner = ProcessScanner(
    world.clock, launchedAt: { _ in .zero }
  ) { [unowned world] then in
    world.after(.milliseconds(50), rarely: .seconds(10)) { then(nil) }
  }
  private(set) lazy var sheds = WorkerSheds(
    loop: world.clock, processes: world.processes.fake, driver: world.driver,
    workers: world.workers, meter: meter, scanner: scanner, liveness: world.liveness.supervisor,
    log: world.processes.log)

  init(_ world: ShellWorld) { self.world = world }

  func measure(
    _ process: WorkerProcess, of id: WorkerID, _ missing: MissingBytes?,
    then: @escaping (Measurement?) -> Void
  ) {
    world.count("measured")
    let footprint = ByteCount.megabytes(world.pick([4, 8]))
    let measurement = Measurement(footprint: footprint, at: world.clock.now, took: .milliseconds(1))
    world.after(.milliseconds(50), rarely: .seconds(10)) { [unowned world] in
      world.report(late: .seconds(100), twice: .seconds(60)) { then(measurement) }
    }
  }
}
