import Glibc
import Lifecycle
import Linux
import Policy

extension Daemon {
  /// Does what the engine wants. No decisions here: whatever goes wrong goes back as an event.
  func execute(_ directive: Directive) {
    if askWrapper(directive) { return }
    switch directive {
    case .launch(let id): launcher.launch(id)
    case .shed(let id, let kind, let deadline): beginShed(id, kind, until: deadline)
    case .finishShed(let id): finishShed(id)
    case .expireTask(let id, let task): expireTask(id, task)
    case .checkSafePoint(let id): senses.safePoints.checkSafePoint(id)
    case .suspend(let id): workers[id]?.sleep?.suspend()
    case .hibernate(let id): workers[id]?.sleep?.hibernate()
    case .resume(let id): workers[id]?.sleep?.resume()
    case .terminate(let id): ends.terminate(id)
    case .abort(let id): ends.terminate(id, by: SIGABRT)
    case .checkWatchdog(let id): senses.watchdogs.checkWatchdog(id)
    case .kill(let id): ends.kill(id)
    case .purge(let id): purge(id)
    case .measure(let id): senses.meter.measure(id)
    case .inspect(let id): inspect(id)
    case .answer: break  // The driver's.
    case .transition(let transition): note(transition)
    case .pressureChanged(let from, let to, let why):
      log(to > from ? .warning : .notice, "pressure \(from.name) → \(to.name): \(why)")
      if to > from { hibernation.dropFromCache(images: workers.values.compactMap(\.image?.path)) }
      tellPressure()
      if to == .normal { restarts.pressureIsNormal() }
    case .report(let report): jetsam.keep(report, policy: engine.policy)
    case .watchdogMissed(let id, let what): log(.warning, "\(id): \(what)")
    case .wouldHave(let id, let what): log(.notice, "\(id): shadow mode: \(what)")
    }
  }

  func engineIsQuiet() { ending.engineIsQuiet() }

  private func note(_ transition: Transition) {
    let priority: DaemonLog.Priority = transition.to == .terminated ? .notice : .info
    log(
      priority,
      "\(transition.worker): \(transition.from.rawValue) → \(transition.to.rawValue): "
        + transition.cause.sentence)
    if transition.to == .terminating, case .pressure = transition.cause {
      jetsam.noteVictim(engine, stall: pressureMonitor.lastStall)
    }
    noteWrapped(transition)
    guard let runtime = workers[transition.worker] else { return }
    saveRecord(runtime, state: transition.to)
    if transition.to == .foreground { runtime.conversation?.lifecycle.didEnterForeground() }
    supervise(runtime, transition)
  }
}
