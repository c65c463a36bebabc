import Lifecycle
import Linux
import Policy

extension Daemon {
  /// Does what the engine wants. No decisions here: whatever goes wrong goes back as an event.
  func perform(_ directive: Directive) {
    if askWrapper(directive) { return }
    switch directive {
    case .launch(let id): launch(id)
    case .shed(let id, let kind, let deadline): beginShed(id, kind, until: deadline)
    case .finishShed(let id): finishShed(id)
    case .expireTask(let id, let task): expireTask(id, task)
    case .checkSafePoint(let id): checkSafePoint(id)
    case .suspend(let id): suspend(id)
    case .hibernate(let id): hibernate(id)
    case .resume(let id): resume(id)
    case .terminate(let id): terminate(id)
    case .kill(let id): kill(id)
    case .purge(let id): purge(id)
    case .measure(let id): measure(id)
    case .inspect(let id): inspect(id)
    case .answer(let request, let answer): requests.removeValue(forKey: request)?(answer)
    case .transition(let transition): note(transition)
    case .pressureChanged(let from, let to, let why):
      log(to > from ? .warning : .notice, "pressure \(from.name) → \(to.name): \(why)")
      if to > from { hibernation.dropFromCache(images: workers.values.compactMap(\.imagePath)) }
      tellPressure()
      if to == .normal { pressureIsNormal() }
    case .report(let report): keep(report)
    case .watchdogMissed(let id, let what): log(.warning, "\(id): \(what)")
    case .wouldHave(let id, let what): log(.notice, "\(id): shadow mode: \(what)")
    }
  }

  private func note(_ transition: Transition) {
    let priority: DaemonLog.Priority = transition.to == .terminated ? .notice : .info
    log(
      priority,
      "\(transition.worker): \(transition.from.rawValue) → \(transition.to.rawValue): "
        + transition.cause.sentence)
    if transition.to == .terminating, case .pressure = transition.cause { lookAtMemory() }
    noteWrapped(transition)
    guard let runtime = workers[transition.worker] else { return }
    saveRecord(runtime, state: transition.to)
    tell(runtime, of: transition)
    supervise(runtime, transition)
  }

  func measure(_ id: WorkerID) {
    guard let runtime = workers[id], let process = runtime.process else { return }
    // What `sample` compares with: it measures again where this has changed since. Read before the
    // measurement, so that a page that comes meanwhile shows as a change.
    let pids = (try? process.tree().pids) ?? []
    runtime.sample.anonymous = pids.reduce(0) { $0 + Self.anonymousMemory(of: $1) }
    guard let footprint = footprint(of: runtime) else { return }
    feed(.footprint(id, footprint))
  }

  /// Now, from the kernel; of a worker that was resumed a moment ago, with what is still to come from its
  /// image; `nil` where there is nothing to measure. Where looking closely isn't
  /// permitted (setuid, PR_SET_DUMPABLE), what everybody may see: anonymous memory. The engine waits
  /// for a number.
  func footprint(of runtime: WorkerRuntime, _ scan: ProcessScan? = nil) -> ByteCount? {
    guard let process = runtime.process, let pids = try? process.tree(in: scan).pids else {
      return nil
    }
    do throws(FootprintError) {
      // Before: a page that comes meanwhile is counted twice rather than not at all.
      let missing = ByteCount(Int64(clamping: runtime.missing?.bytes ?? 0))
      return ByteCount(try Footprint.measure(pids).footprint) + missing
    } catch {
      if !runtime.isMeasuredRoughly {
        runtime.isMeasuredRoughly = true
        log(.warning, "\(runtime.id): measured roughly: \(error)")
      }
      return ByteCount(Int64(clamping: pids.reduce(0) { $0 + Self.anonymousMemory(of: $1) }))
    }
  }
}
