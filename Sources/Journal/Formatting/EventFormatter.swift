import Lifecycle
import Policy

/// Describes an engine's history in sentences: one for each change that matters, when its outcome
/// is known. It keeps the reason from the directive to the outcome.
public struct EventFormatter: Sendable {
  /// A change in progress: the stable state in which it began, and its cause.
  private struct PendingChange: Sendable {
    var from: WorkerState
    var cause: Cause
    var footprint: ByteCount
  }
  private var pendingChanges: [WorkerID: PendingChange] = [:]
  /// The kind of the last request to free memory, by worker.
  private var sheds: [WorkerID: Directive.ShedKind] = [:]
  /// The workers that aren't suspended because they work by their own timers. That is reported once
  /// for each run.
  private var awake: Set<WorkerID> = []
  private var verbs: [Request.ID: Request] = [:]

  public init() {}

  /// Returns the notices of an event.
  ///
  /// - Parameter engine: the engine after the event.
  public mutating func notices(
    of event: Event, _ directives: [Directive], _ engine: Engine, at now: Instant
  ) -> [Notice] {
    var notices = [notice(of: event, at: now)]
    for directive in directives { notices.append(notice(of: directive, event, engine, at: now)) }
    return notices.compactMap { $0 }
  }

  /// Returns the notice of a change of the machine-wide policy.
  public func notice(ofPolicy policy: LifecyclePolicy, at now: Instant) -> Notice {
    let mode = policy.mode == .shadow ? ", in shadow mode" : ""
    return Notice(at: now, kind: .policy, text: "policy \(policy.name) applied\(mode)")
  }

  /// Returns the notice that comes before those of the event's directives.
  private mutating func notice(of event: Event, at now: Instant) -> Notice? {
    switch event {
    case .request(let request):
      if verbs.count > 1000 { verbs = [:] }
      verbs[request.id] = request
    case .shedFinished(let worker, let before, let after):
      guard let kind = sheds.removeValue(forKey: worker) else { return nil }
      return shed(kind, of: worker, from: before, to: after, at: now)
    case .hibernateFailed(let worker, let reason, _):
      return failed(worker, "can't be hibernated: \(reason)", at: now)
    case .suspendFailed(let worker, let reason):
      return failed(worker, "can't be suspended: \(reason)", at: now)
    case .staysAwake(let worker, let reason):
      guard awake.insert(worker).inserted else { return nil }
      return failed(worker, "isn't suspended: \(reason)", at: now)
    case .exited(let worker, _): awake.remove(worker)
    case .resumeFailed(let worker, let reason, let intact):
      let suffix = intact ? "" : "; its memory can't be verified"
      return failed(worker, "can't be resumed: \(reason)\(suffix)", at: now)
    case .purged(let worker, let freed):
      return Notice(
        at: now, kind: .memory, worker: worker, occasion: .purge,
        text: "purged: freed \(freed) of purgeable memory", freed: freed)
    case .trimmed(let worker, let result):
      return Notice(
        at: now, kind: .memory, worker: worker, occasion: .trim, text: result.sentence,
        took: result.duration, freed: result.freed)
    case .filled(let worker, let swapped):
      let outcome = swapped > .zero ? "\(swapped) are still in swap" : "all of its memory is in RAM"
      return memory(.fill, of: worker, "filled: \(outcome)", at: now)
    case .trimFailed(let worker, let reason, _):
      return failed(worker, "can't be trimmed: \(reason)", at: now)
    case .trimLost(let worker, let reason):
      return memory(.fill, of: worker, "all of its trimmed memory came back: \(reason)", at: now)
    case .fillFailed(let worker, let reason):
      return failed(worker, "can't be filled: \(reason)", at: now)
    case .purgeFailed(let worker, let reason):
      return failed(worker, "can't be purged: \(reason)", at: now)
    case .profileChanged(let worker, _):
      return Notice(at: now, kind: .policy, worker: worker, text: "configuration changed")
    default: break
    }
    return nil
  }

  private func failed(_ worker: WorkerID, _ text: String, at now: Instant) -> Notice {
    Notice(at: now, kind: .failed, worker: worker, text: text)
  }

  private func memory(
    _ occasion: Notice.Occasion, of worker: WorkerID, _ text: String, at now: Instant
  ) -> Notice {
    Notice(at: now, kind: .memory, worker: worker, occasion: occasion, text: text)
  }

  /// Returns nil for a worker that had nothing to free on its way to the background.
  private func shed(
    _ kind: Directive.ShedKind, of worker: WorkerID, from before: ByteCount, to after: ByteCount,
    at now: Instant
  ) -> Notice? {
    if after >= before, kind == .didEnterBackground { return nil }
    let what =
      after < before ? "freed \(before - after) (from \(before) to \(after))" : "freed nothing"
    return Notice(
      at: now, kind: .memory, worker: worker,
      occasion: kind == .memoryWarning ? .warning : .background, text: "\(what) \(kind.text)",
      freed: max(.zero, before - after))
  }

  private mutating func notice(
    of directive: Directive, _ event: Event, _ engine: Engine, at now: Instant
  ) -> Notice? {
    switch directive {
    case .transition(let transition): return notice(of: transition, event, engine)
    case .pressureChanged(let from, let to, let reason):
      let text = "pressure \(from.name) → \(to.name): \(reason)"
      return Notice(at: now, kind: .pressure, level: to, text: text)
    case .report(let report): return notice(of: report, at: now)
    case .wouldHave(let worker, let what):
      return Notice(at: now, kind: .shadow, worker: worker, text: what)
    case .willTerminate(let worker, let notice):
      return Notice(
        at: now, kind: .memory, worker: worker, level: notice.level, occasion: .notice,
        text: notice.sentence(of: worker, at: now), took: notice.until - now)
    case .willNotTerminate(let worker, let reason):
      return memory(.withdrawn, of: worker, "not terminated: \(reason)", at: now)
    case .overLimit(let worker, let excess, let consequence):
      return memory(.limit, of: worker, "\(excess.sentence): \(consequence)", at: now)
    case .leakSuspected(let worker, let leak):
      return memory(.leakSuspected, of: worker, "leak suspected: \(leak.sentence)", at: now)
    case .protectedLeft(let workers, let level):
      let text = Protection.sentence(onLeft: workers, at: level)
      return Notice(at: now, kind: .pressure, level: level, text: text)
    case .terminatesNone(let vain):
      return Notice(at: now, kind: .pressure, level: vain.level, text: vain.sentence)
    case .shed(let worker, let kind, _):
      sheds[worker] = kind
      if kind != .memoryWarning { return nil }
      return memory(.warning, of: worker, "memory warning sent", at: now)
    case .watchdogMissed(let worker, let what): return failed(worker, what, at: now)
    case .expireTask(let worker, let task):
      return memory(.task, of: worker, "background task \(task) is out of time", at: now)
    case .answer(let id, let answer): return notice(of: answer, verbs.removeValue(forKey: id), now)
    default: return nil
    }
  }

  private func notice(of answer: Answer, _ request: Request?, _ now: Instant) -> Notice? {
    let kind: Notice.Kind
    switch answer.code {
    case .done: return nil
    case .refused, .unknownWorker: kind = .refused
    case .failed: kind = .failed
    }
    let what = request.map { "`\($0.verb.rawValue)`: " } ?? ""
    return Notice(at: now, kind: kind, worker: request?.worker, text: what + answer.text)
  }

  private func notice(of report: JetsamReport, at now: Instant) -> Notice {
    let victims = report.entries.filter { $0.victimBecause != nil }
    let names = victims.map(\.worker.name).joined(separator: ", ")
    let freed = victims.reduce(ByteCount.zero) { $0 + ($1.gaveBack ?? .zero) }
    return Notice(
      at: now, kind: .jetsam, level: report.level,
      text:
        "terminated for lack of memory: \(names); freed \(freed), \(report.availableAfter) of "
        + "\(report.budget) available (details: `dormouse jetsam`)", freed: freed)
  }
}

// MARK: - Changes of state

extension EventFormatter {
  private mutating func notice(
    of transition: Transition, _ event: Event, _ engine: Engine
  ) -> Notice? {
    let worker = transition.worker
    let pendingChange = pendingChanges[worker]
    switch transition.to {
    case .suspending, .hibernating, .resuming, .terminating:
      // A worker may be terminated during another change. The notice names the last stable state.
      let from = pendingChange?.from ?? transition.from
      pendingChanges[worker] = PendingChange(
        from: from, cause: transition.cause, footprint: engine.footprint(of: worker))
      return nil
    default: pendingChanges[worker] = nil
    }
    // The worker is in the state where it began. The failure has been reported already.
    if let pendingChange, pendingChange.from == transition.to { return nil }
    var from = pendingChange?.from ?? transition.from
    if from == transition.to { from = transition.from }
    let isOutcome = transition.cause == .succeeded
    let cause = isOutcome ? pendingChange?.cause ?? transition.cause : transition.cause
    var notice = Notice(
      at: transition.at, kind: .state, worker: worker, from: from, to: transition.to, cause: cause,
      text: cause.sentence)
    if cause == .adopted, case .adopted(_, let profile, _) = event, let rule = profile.rule {
      notice.text += " (rule \(rule))"
    }
    describeCost(in: &notice, of: event, cause: cause, pendingChange: pendingChange)
    return notice
  }

  private func describeCost(
    in notice: inout Notice, of event: Event, cause: Cause, pendingChange: PendingChange?
  ) {
    // The event's cost is described only for its own worker. The transition may be another
    // worker's.
    guard event.subject == notice.worker else { return }
    switch event {
    case .hibernated(_, let result):
      let before = result.footprintBefore
      let after = result.footprintAfter
      notice.took = result.duration
      notice.freed = max(.zero, before - after)
      notice.text +=
        "; \(before) → \(after), image \(result.imageSize), \(result.duration.text)"
    case .resumed(_, let took):
      notice.took = took
      notice.text += "; \(took.text)"
    case .exited:
      guard case .pressure = cause, let pendingChange else { break }
      notice.freed = pendingChange.footprint
      notice.text += "; freed \(pendingChange.footprint)"
    default: break
    }
  }
}
