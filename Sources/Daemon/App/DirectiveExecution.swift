import Glibc
import Lifecycle
import Policy

/// Carries out the engine's directives. It makes no decisions: each failure is sent back as an event.
final class DirectiveExecution: DirectiveExecutor {
  struct Parts {
    let services: Services
    let driver: EngineDriver
    let workers: WorkerRegistry
    let wrappers: RegisteredWrappers
    let launcher: WorkerLauncher
    let sheds: WorkerSheds
    let conversations: WorkerConversations
    let senses: Senses
    let sleeps: WorkerSleeps
    let ends: WorkerEnds
    let restarts: RestartSupervisor
    let supervision: WorkerSupervision
    let recordWriter: WorkerRecordWriter
    let jetsam: JetsamKeeper
    let pressure: PressureMonitor
    let ending: DaemonEnd
    let externals: ExternalAdoption
    /// nil: the configuration declares the workers.
    let program: (any CallersProgram)?
  }

  private let parts: Parts

  init(_ parts: Parts) { self.parts = parts }

  private var log: DaemonLog { parts.services.log }

  func execute(_ directive: Directive) {
    if parts.wrappers.execute(directive) { return }
    switch directive {
    case .launch(let id): parts.launcher.launch(id)
    case .shed(let id, let kind, let deadline): parts.sheds.beginShed(id, kind, until: deadline)
    case .finishShed(let id): parts.sheds.finishShed(id)
    case .expireTask(let id, let task): parts.conversations.expireTask(id, task)
    case .checkSafePoint(let id): parts.senses.safePoints.checkSafePoint(id)
    case .suspend(let id): suspend(id)
    case .hibernate(let id): parts.workers[id]?.sleep?.hibernate()
    case .resume(let id): resume(id)
    case .terminate(let id): parts.ends.terminate(id)
    case .abort(let id): parts.ends.terminate(id, by: SIGABRT)
    case .checkWatchdog(let id): parts.senses.watchdogs.checkWatchdog(id)
    case .kill(let id): parts.ends.kill(id)
    case .purge(let id): parts.conversations.purge(id)
    case .measure(let id): parts.senses.meter.measure(id)
    case .inspect(let id): parts.sleeps.inspect(id)
    case .answer: break  // The driver's.
    case .transition(let transition): report(transition)
    case .pressureChanged(let from, let to, let why):
      pressureHasChanged(from: from, to: to, why: why)
    case .report(let report): parts.jetsam.keep(report, policy: parts.driver.state.policy)
    case .watchdogMissed(let id, let what): log(.warning, "\(id): \(what)")
    case .wouldHave(let id, let what): log(.notice, "\(id): shadow mode: \(what)")
    case .willTerminate(let id, let notice):
      log(.warning, "\(id) \(notice.sentence(of: id, at: notice.asked))")
    case .willNotTerminate(let id, let why): log(.notice, "\(id): not terminated: \(why)")
    case .overLimit(let id, let excess, let consequence):
      log(.warning, "\(id): \(excess.sentence): \(consequence)")
    case .leakSuspected(let id, let leak): log(.warning, "\(id): leak suspected: \(leak.sentence)")
    case .protectedLeft(let ids, let level):
      log(.warning, Protection.sentence(onLeft: ids, at: level))
    case .terminatesNone(let vain):
      log(.warning, vain.sentence)
      parts.jetsam.measure? { [log] in
        if let text = $0?.sentenceOnLargestOther { log(.warning, text) }
      }
    }
  }

  private func suspend(_ id: WorkerID) {
    if let why = parts.ending.refusalToSuspend(id) ?? parts.externals.refusalToSuspend(id) {
      return parts.driver.send(.suspendFailed(id, why))
    }
    parts.workers[id]?.sleep?.suspend()
  }

  private func resume(_ id: WorkerID) {
    parts.workers[id]?.sleep?.resume()
    // What wakes with it and is still being hibernated wakes after that, and a client waits for it, too.
    let state = parts.driver.state
    for other in state.wakesWith(id) where state.state(of: other) == .hibernating {
      parts.services.hibernation.prioritize(other.name)
    }
  }

  func engineIsQuiet() { parts.ending.engineIsQuiet() }

  private func pressureHasChanged(from: PressureLevel, to: PressureLevel, why: String) {
    log(to > from ? .warning : .notice, "pressure \(from.name) → \(to.name): \(why)")
    if to > from {
      parts.services.hibernation.dropFromCache(
        images: parts.workers.values.compactMap(\.image?.path))
    }
    parts.conversations.sendPressure()
    if to == .normal { parts.restarts.startWhatFits() }
  }

  private func report(_ transition: Transition) {
    let priority: DaemonLog.Priority = transition.to == .terminated ? .notice : .info
    log(
      priority,
      "\(transition.worker): \(transition.from.rawValue) → \(transition.to.rawValue): "
        + transition.cause.sentence)
    if transition.to == .terminating, case .pressure = transition.cause {
      parts.jetsam.recordVictim(parts.driver.state, stall: parts.pressure.lastStall)
    }
    parts.program?.hasChanged(transition)
    guard let runtime = parts.workers[transition.worker] else { return }
    parts.recordWriter.save(runtime, state: transition.to)
    if transition.to == .terminated {
      parts.senses.logs.forget(runtime.id)
    } else if transition.from == .launching, transition.to.runs {
      parts.senses.logs.keepSmall(runtime)
    }
    if transition.to == .foreground { runtime.conversation?.lifecycle.didEnterForeground() }
    parts.supervision.supervise(transition)
  }
}
