import Lifecycle
import Policy

// These functions estimate the outcome of a directive. Nothing fails here: a failure that never
// occurred can't be known.

extension WhatIf {
  private mutating func schedule(_ event: Event, _ worker: WorkerID, at moment: Instant) {
    scheduled += 1
    pending.append(
      Outcome(at: moment, order: scheduled, event: event, life: lives[worker, default: 0]))
  }

  mutating func perform(_ directive: Directive, at now: Instant) {
    switch directive {
    case .launch(let worker): launch(worker, at: now)
    case .shed(let worker, _, _):
      if let delay = model.answer(worker) {
        schedule(.shedAnswered(worker), worker, at: now + delay)
      }
    case .finishShed(let worker):
      let before = engine.footprint(of: worker)
      let after = model.afterShedding(worker, before)
      schedule(.shedFinished(worker, before: before, after: after), worker, at: now)
    case .suspend(let worker): suspend(worker, at: now)
    case .hibernate(let worker): hibernate(worker, at: now)
    case .resume(let worker): resume(worker, at: now)
    case .checkWatchdog(let worker): schedule(.watchdogSeen(worker, at: now), worker, at: now)
    case .abort(let worker):
      schedule(.exited(worker, .signaled(6)), worker, at: now + .milliseconds(10))
    case .terminate(let worker):
      schedule(.exited(worker, .signaled(15)), worker, at: now + model.terminate(worker))
    case .kill(let worker):
      schedule(.exited(worker, .signaled(9)), worker, at: now + .milliseconds(10))
    case .checkSafePoint(let worker):
      schedule(.fileLocks(worker, held: locks[worker] ?? 0), worker, at: now)
    case .purge(let worker):
      let offered = engine.snapshot(of: worker)?.purgeable ?? .zero
      schedule(.purged(worker, freed: offered), worker, at: now)
    case .trim(let worker): trim(worker, at: now)
    case .fill(let worker): schedule(.filled(worker, swapped: .zero), worker, at: now)
    case .measure(let worker):
      schedule(.footprint(worker, footprint(worker)), worker, at: now)
    // No outcome is lost here, so each operation in progress has one.
    case .inspect(let worker): schedule(.found(worker, .underWay), worker, at: now)
    // A task whose time has ended ends as it did in the journal. The other directives need nothing.
    case .expireTask, .answer, .transition, .pressureChanged, .report, .watchdogMissed, .wouldHave,
      .overLimit, .leakSuspected, .willTerminate, .willNotTerminate,
      .protectedLeft, .terminatesNone:
      break
    }
  }

  /// A sleeping worker keeps its footprint. An awake one has the footprint in the journal.
  private func footprint(_ worker: WorkerID) -> ByteCount {
    let current = engine.footprint(of: worker)
    let isAwake = engine.state(of: worker)?.runs == true
    return isAwake || current == .zero ? awake[worker] ?? current : current
  }

  private mutating func suspend(_ worker: WorkerID, at now: Instant) {
    let moment = now + model.suspend(worker)
    if model.staysAwake(worker), engine.snapshot(of: worker, at: now)?.mayStayAwake == true {
      return schedule(.staysAwake(worker, "it works by its own timer"), worker, at: moment)
    }
    schedule(.suspended(worker), worker, at: moment)
  }

  private mutating func launch(_ worker: WorkerID, at now: Instant) {
    lives[worker, default: 0] += 1
    schedule(.launched(worker), worker, at: now)
    let ready = now + model.launch(worker)
    schedule(.ready(worker), worker, at: ready)
    if let footprint = awake[worker] { schedule(.footprint(worker, footprint), worker, at: ready) }
  }

  /// The memory that comes back after a trim isn't estimated.
  private mutating func trim(_ worker: WorkerID, at now: Instant) {
    let (resident, swapped) = (engine.resident(of: worker), engine.swapped(of: worker))
    guard let result = model.trim(worker, resident: resident, swapped: swapped) else {
      let reason = "the journal has no trim by which to estimate one"
      return schedule(.trimFailed(worker, reason, permanent: true), worker, at: now)
    }
    schedule(.trimmed(worker, result), worker, at: now + result.duration)
  }

  private mutating func hibernate(_ worker: WorkerID, at now: Instant) {
    let result = model.hibernation(worker, engine.footprint(of: worker))
    schedule(.hibernated(worker, result), worker, at: now + result.duration)
  }

  private mutating func resume(_ worker: WorkerID, at now: Instant) {
    let before = awake[worker] ?? engine.snapshot(of: worker)?.peakFootprint ?? .zero
    // The state is `resuming` for both kinds of sleep. A worker with less than half of its awake
    // footprint was hibernated.
    let isSmall = engine.footprint(of: worker).bytes * 2 < before.bytes
    let cost = model.resume(worker, hibernated: isSmall ? before : nil)
    schedule(.resumed(worker, cost), worker, at: now + cost)
    schedule(.footprint(worker, before), worker, at: now + cost)
  }

  /// Schedules the outcomes of the operations that were in progress when the journal begins.
  mutating func resumeTransits(at now: Instant) {
    for worker in engine.workerIDs {
      switch engine.state(of: worker) {
      case .launching: launch(worker, at: now)
      case .suspending: perform(.suspend(worker), at: now)
      case .hibernating: perform(.hibernate(worker), at: now)
      case .resuming: perform(.resume(worker), at: now)
      case .terminating: perform(.terminate(worker), at: now)
      default: break
      }
    }
  }
}
