import Glibc
import Lifecycle
import Policy

/// Carries out the engine's directives. It makes no decisions: it sends each failure back as an
/// event.
struct DirectiveExecution {
  let services: Services
  let launcher: WorkerLauncher
  let sheds: WorkerSheds
  let conversations: WorkerConversations
  let senses: Senses
  let sleeps: WorkerSleeps
  let jetsam: JetsamKeeper
  let pressure: PressureMonitor
  let ending: DaemonEnd
  let externals: ExternalAdoption
  /// The program of the daemon's caller; nil: the configuration declares the workers.
  let program: (any CallersProgram)?

  private var log: DaemonLog { services.log }
  private var driver: EngineDriver { externals.driver }
  private var workers: WorkerRegistry { externals.workers }

  func execute(_ directive: Directive) {
    if externals.declared.wrappers.execute(directive) { return }
    switch directive {
    case .launch(let id): launcher.launch(id)
    case .shed(let id, let kind, let deadline): sheds.beginShed(id, kind, until: deadline)
    case .finishShed(let id): sheds.finishShed(id)
    case .expireTask(let id, let task): conversations.expireTask(id, task)
    case .checkSafePoint(let id): senses.safePoints.checkSafePoint(id)
    case .suspend(let id): suspend(id)
    case .hibernate(let id): workers[id]?.sleep?.hibernate()
    case .resume(let id): resume(id)
    case .trim(let id): workers[id]?.sleep?.trim()
    case .fill(let id): workers[id]?.sleep?.fill()
    case .terminate(let id): externals.ends.terminate(id)
    case .abort(let id): externals.ends.terminate(id, by: SIGABRT)
    case .checkWatchdog(let id): conversations.checkWatchdog(id)
    case .kill(let id): externals.ends.kill(id)
    case .purge(let id): conversations.purge(id)
    case .measure(let id): senses.meter.measure(id)
    case .inspect(let id): sleeps.inspect(id)
    case .answer: break  // The driver handles it.
    case .transition(let transition): report(transition)
    case .pressureChanged(let from, let to, let reason):
      pressureHasChanged(from: from, to: to, reason: reason)
    case .report(let report): jetsam.keep(report, policy: driver.state.policy)
    case .watchdogMissed(let id, let what): log(.warning, "\(id): \(what)")
    case .wouldHave(let id, let what): log(.notice, "\(id): shadow mode: \(what)")
    case .willTerminate(let id, let notice):
      log(.warning, "\(id) \(notice.sentence(of: id, at: notice.asked))")
    case .willNotTerminate(let id, let reason): log(.notice, "\(id): not terminated: \(reason)")
    case .overLimit(let id, let excess, let consequence):
      log(.warning, "\(id): \(excess.sentence): \(consequence)")
    case .leakSuspected(let id, let leak): log(.warning, "\(id): leak suspected: \(leak.sentence)")
    case .protectedLeft(let ids, let level):
      log(.warning, Protection.sentence(onLeft: ids, at: level))
    case .terminatesNone(let vain):
      log(.warning, vain.sentence)
      jetsam.measure? { [log] in
        if let text = $0?.sentenceOnLargestOther { log(.warning, text) }
      }
    }
  }

  private func suspend(_ id: WorkerID) {
    if let reason = ending.refusalToSuspend(id) ?? externals.refusalToSuspend(id) {
      return driver.send(.suspendFailed(id, reason))
    }
    workers[id]?.sleep?.suspend()
  }

  private func resume(_ id: WorkerID) {
    workers[id]?.sleep?.resume()
    // Workers that wake together with this one may still be in the middle of a hibernation, and are
    // woken after it. A client waits for that, so these hibernations come first.
    let state = driver.state
    for other in state.wakesWith(id) where state.state(of: other) == .hibernating {
      services.hibernation.prioritize(other.name)
    }
  }

  private func pressureHasChanged(from: PressureLevel, to: PressureLevel, reason: String) {
    log(to > from ? .warning : .notice, "pressure \(from.name) → \(to.name): \(reason)")
    if to > from {
      services.hibernation.dropFromCache(
        images: workers.values.compactMap(\.image?.path))
    }
    conversations.sendPressure()
    if to == .normal { externals.ends.restarts.startFittingWorkers() }
  }

  private func report(_ transition: Transition) {
    let priority: DaemonLog.Priority = transition.to == .terminated ? .notice : .info
    log(
      priority,
      "\(transition.worker): \(transition.from.rawValue) → \(transition.to.rawValue): "
        + transition.cause.sentence)
    if transition.to == .terminating, case .pressure = transition.cause {
      jetsam.recordVictim(driver.state, stall: pressure.lastStall)
    }
    program?.didChange(transition)
    guard let worker = workers[transition.worker] else { return }
    externals.recordWriter.save(worker, state: transition.to)
    if transition.to == .terminated {
      senses.logs.forget(worker.id)
    } else if transition.from == .launching, transition.to.runs {
      senses.logs.checkLog(worker)
    }
    if transition.to == .foreground { worker.conversation?.didEnterForeground() }
    externals.ends.supervision.supervise(transition)
  }
}
