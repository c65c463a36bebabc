import Glibc
import Lifecycle
import Policy

/// Does what the engine wants. No decisions here: whatever goes wrong goes back as an event.
final class DirectiveExecution: DirectiveExecutor {
  private unowned let daemon: Daemon

  init(_ daemon: Daemon) { self.daemon = daemon }

  func execute(_ directive: Directive) {
    if daemon.wrappers.execute(directive) { return }
    switch directive {
    case .launch(let id): daemon.launcher.launch(id)
    case .shed(let id, let kind, let deadline): daemon.sheds.beginShed(id, kind, until: deadline)
    case .finishShed(let id): daemon.sheds.finishShed(id)
    case .expireTask(let id, let task): daemon.conversations.expireTask(id, task)
    case .checkSafePoint(let id): daemon.senses.safePoints.checkSafePoint(id)
    case .suspend(let id): daemon.workers[id]?.sleep?.suspend()
    case .hibernate(let id): daemon.workers[id]?.sleep?.hibernate()
    case .resume(let id): daemon.workers[id]?.sleep?.resume()
    case .terminate(let id): daemon.ends.terminate(id)
    case .abort(let id): daemon.ends.terminate(id, by: SIGABRT)
    case .checkWatchdog(let id): daemon.senses.watchdogs.checkWatchdog(id)
    case .kill(let id): daemon.ends.kill(id)
    case .purge(let id): daemon.conversations.purge(id)
    case .measure(let id): daemon.senses.meter.measure(id)
    case .inspect(let id): daemon.sleeps.inspect(id)
    case .answer: break  // The driver's.
    case .transition(let transition): note(transition)
    case .pressureChanged(let from, let to, let why): pressureHasChanged(from, to, why)
    case .report(let report): daemon.jetsam.keep(report, policy: daemon.engine.policy)
    case .watchdogMissed(let id, let what): daemon.log(.warning, "\(id): \(what)")
    case .wouldHave(let id, let what): daemon.log(.notice, "\(id): shadow mode: \(what)")
    }
  }

  func engineIsQuiet() { daemon.ending.engineIsQuiet() }

  private func pressureHasChanged(_ from: PressureLevel, _ to: PressureLevel, _ why: String) {
    daemon.log(to > from ? .warning : .notice, "pressure \(from.name) → \(to.name): \(why)")
    if to > from {
      daemon.hibernation.dropFromCache(images: daemon.workers.values.compactMap(\.image?.path))
    }
    daemon.conversations.tellPressure()
    if to == .normal { daemon.restarts.pressureIsNormal() }
  }

  private func note(_ transition: Transition) {
    let priority: DaemonLog.Priority = transition.to == .terminated ? .notice : .info
    daemon.log(
      priority,
      "\(transition.worker): \(transition.from.rawValue) → \(transition.to.rawValue): "
        + transition.cause.sentence)
    if transition.to == .terminating, case .pressure = transition.cause {
      daemon.jetsam.noteVictim(daemon.engine, stall: daemon.pressureMonitor.lastStall)
    }
    daemon.role.program?.hasChanged(transition)
    guard let runtime = daemon.workers[transition.worker] else { return }
    daemon.saveRecord(runtime, state: transition.to)
    if transition.to == .foreground { runtime.conversation?.lifecycle.didEnterForeground() }
    daemon.supervision.supervise(transition)
  }
}
