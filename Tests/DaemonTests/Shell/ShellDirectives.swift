import Lifecycle

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
