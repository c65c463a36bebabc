import Lifecycle
import Policy

/// Checks what must be true after every event, whatever the machine does.
struct Invariants {
  private var states: [WorkerID: WorkerState] = [:]
  private var open: Set<Request.ID> = []
  private var level = PressureLevel.normal
  private var victims: [WorkerID] = []
  /// The newest profile of each worker.
  private var profiles: [WorkerID: WorkerProfile] = [:]
  private var protection = RequestedProtection()
  private var notices = NoticeCheck()
  private var vain = FutileTerminationCheck()
  private var insteadOfEnd = HibernateInsteadCheck()
  private var now = Instant.zero
  var seen: Set<String> = []
  private var accounting = Accounting()
  private var together = WakeTogetherCheck()
  /// The states before the event that is checked.
  private var earlier: [WorkerID: WorkerState] = [:]

  /// The longest time of an operation: its limit for 100 MB, and a minute for lost outcomes.
  static let maxTransit = TransitLimits.limit(moving: .megabytes(100)) + .seconds(60)

  /// Checks an event and its directives. Returns a complaint, or `nil`.
  mutating func check(
    _ event: Event, _ directives: [Directive], before: PressureLevel, after: Engine,
    at now: Instant
  ) -> String? {
    if case .request(let request) = event { open.insert(request.id) }
    track(event)
    self.now = now
    vain.record(event, after, at: now)
    level = before
    earlier = states
    accounting.record(event, states, at: now)
    together.record(event)
    insteadOfEnd.record(event)
    for directive in directives {
      let complaint =
        check(directive, after)
        ?? notices.check(directive, profiles, after: after, level: level, at: now)
        ?? insteadOfEnd.check(directive, after)
      if let complaint { return complaint }
      if case .abort(let worker) = directive, !event.isWatchdogReport(of: worker) {
        return "\(worker) is ended for a missing WATCHDOG=1 that was not looked for"
      }
      let error = accounting.check(directive, states)
      if let error { return error }
      if let error = together.record(directive, states) { return error }
    }
    protection.forgetAll(but: after.workerIDs)
    let complaint =
      checkStates(after) ?? accounting.check(after, states) ?? together.check(after, states)
    if let complaint { return complaint }
    if let deadline = after.nextDeadline, deadline <= now {
      return "nextDeadline \(deadline) isn't after now, \(now)"
    }
    return nil
  }

  private mutating func track(_ event: Event) {
    protection.record(event)
    switch event {
    case .added(let worker, let profile), .adopted(let worker, let profile, _),
      .profileChanged(let worker, let profile):
      profiles[worker] = profile
    case .released: seen.insert("released")
    case .machineSlept: seen.insert("machine slept")
    case .found(_, let condition): seen.insert("found \(condition.name)")
    default: break
    }
  }

  /// Checks that every rule has marked the workers that a change concerns: an engine that examines
  /// every worker again decides nothing more, and waits for the same instant.
  func checkNothingLeft(_ engine: Engine, at now: Instant) -> String? {
    var again = engine.reviewed()
    let more = again.handle(.deadline, at: now)
    if !more.isEmpty { return "left undone: \(more)" }
    // A change of the rules outside of an event hasn't been processed yet.
    return again == engine && again.nextDeadline == engine.nextDeadline
      ? nil : "decides differently when it looks at every worker again"
  }

  private mutating func check(_ directive: Directive, _ after: Engine) -> String? {
    switch directive {
    case .transition(let transition): return check(transition, after)
    case .answer(let request, let answer):
      guard open.remove(request) != nil else { return "request \(request) was answered twice" }
      seen.insert("answer \(answer.code)")
      return answer.text.isEmpty ? "an answer without a text" : nil
    case .pressureChanged(let from, let to, let reason):
      guard from == level, from != to else { return "pressure went from \(from) at \(level)" }
      level = to
      vain.record(pressure: to, at: now)
      seen.insert("pressure \(to.name)")
      return reason.isEmpty ? "a change of pressure without a reason" : nil
    case .report(let report): return check(report)
    case .wouldHave: seen.insert("would have")
    case .protectedLeft(let workers, let level):
      seen.insert("protected left")
      if workers.isEmpty || level == .normal { return "an empty report on protected workers" }
      return workers.first { !isProtected($0) }.map { "\($0) was reported as protected and isn't" }
    case .willTerminate: seen.insert("notice")
    case .willNotTerminate: seen.insert("notice withdrawn")
    case .overLimit(let worker, let excess, _):
      seen.insert("over \(excess.step.rawValue)")
      return limits.check(excess, of: worker)
    case .leakSuspected(let worker, let leak):
      seen.insert("leak suspected")
      return limits.check(leak, of: worker)
    case .terminatesNone(let vain): seen.insert("terminates none: \(vain.reason.rawValue)")
    case .watchdogMissed: seen.insert("watchdog reported")
    case .purge: seen.insert("purge")
    case .trim: seen.insert("trim")
    case .fill: seen.insert("fill")
    case .checkSafePoint: seen.insert("look for locks")
    case .abort: seen.insert("abort")
    case .checkWatchdog(let worker):
      seen.insert("look for WATCHDOG=1")
      guard states[worker] == .foreground || states[worker] == .background else {
        return "expects WATCHDOG=1 of \(worker), which is \(states[worker] ?? .terminated)"
      }
    case .inspect(let worker): seen.insert("inspect \(states[worker] ?? .terminated)")
    default: break
    }
    guard let worker = directive.worker else { return nil }
    if case .launch = directive { return nil }
    return states[worker] ?? .terminated == .terminated
      ? "\(directive) concerns a terminated worker" : nil
  }

  private mutating func check(_ transition: Transition, _ after: Engine) -> String? {
    let recorded = states[transition.worker] ?? .terminated
    guard recorded == transition.from else {
      return "\(transition) starts elsewhere than in \(recorded)"
    }
    guard transition.cause == .adopted || transition.from.mayBecome(transition.to) else {
      return "\(transition) is no step"
    }
    seen.insert("\(transition.from) → \(transition.to)")
    if case .pressure = transition.cause, transition.from == .suspending {
      seen.insert("suspended instead of an end")
    }
    if transition.cause == .heartbeat { seen.insert("heartbeat of \(transition.from)") }
    if transition.cause == .adopted { seen.insert("adopted") }
    if case .wokenWith = transition.cause { seen.insert("woken with another to \(transition.to)") }
    if case .footprint(let excess) = transition.cause {
      seen.insert("\(excess.step.rawValue) for its footprint")
    }
    if let complaint = limits.check(transition) { return complaint }
    if case .watchdog = transition.cause { seen.insert("watchdog ends \(transition.from)") }
    defer { states[transition.worker] = transition.to }
    guard transition.to == .terminating, case .pressure(let acting) = transition.cause else {
      return nil
    }
    victims.append(transition.worker)
    seen.insert("jetsam of \(transition.from)")
    if !mayEnd(transition.worker) {
      return "\(transition.worker) may not be terminated for lack of memory"
    }
    if level == .normal { return "\(transition.worker) was terminated without pressure" }
    if after.policy.terminate.order.first == .band { seen.insert("band checked") }
    return checkForeground(transition, after) ?? checkBand(transition, after)
      ?? vain.check(transition, at: acting, after, at: now)
  }

  private var limits: FootprintLimitCheck { FootprintLimitCheck(profiles: profiles) }

  /// Returns true if a worker is protected from termination for lack of memory, by its policy or by
  /// a request.
  private func isProtected(_ worker: WorkerID) -> Bool {
    profiles[worker]?.policy.terminate.forMemory == false || protection.workers.contains(worker)
  }

  /// Workers of another supervisor are never terminated for lack of memory.
  private func mayEnd(_ worker: WorkerID) -> Bool {
    profiles[worker]?.mayBeTerminated != false && !isProtected(worker)
  }

  /// Returns a complaint if a worker of a lower band in the same rung could have freed as much.
  private func checkBand(_ transition: Transition, _ after: Engine) -> String? {
    let ladder = after.policy.ladder
    let makesRoomOnDisk =
      transition.from == .hibernated
      && PressureLevel.allCases.contains { ladder[$0].contains(.hibernate) }
    guard after.policy.terminate.order.first == .band, !makesRoomOnDisk,
      let victim = after.snapshot(of: transition.worker)
    else { return nil }
    let spared = after.snapshots().first { other in
      other.state.victims == transition.from.victims && other.band < victim.band
        && after.resident(of: other.worker) >= .megabytes(1) && earlier[other.worker] == other.state
        && !other.isShadow && mayEnd(other.worker)
    }
    return spared.map {
      "\(transition.worker), band \(victim.band), was terminated before "
        + "\($0.worker), band \($0.band)"
    }
  }

  /// Returns a complaint if a foreground worker is ended while a cheaper worker is left: one that
  /// every level with a rung for foreground workers could terminate, too.
  private func checkForeground(_ transition: Transition, _ after: Engine) -> String? {
    guard transition.from == .foreground || transition.from == .launching else { return nil }
    let ladder = after.policy.ladder
    let levels = PressureLevel.allCases.filter {
      $0 <= level && ladder[$0].contains(.terminate(.foreground))
    }
    let cheaper = after.snapshots().first { other in
      let rung: Ladder.Rung? =
        switch other.state {
        case .suspended, .hibernated: .terminate(.suspended)
        case .background: .terminate(.background)
        default: nil
        }
      guard let rung, after.resident(of: other.worker) >= .megabytes(1),
        earlier[other.worker] == other.state,
        !other.isShadow, mayEnd(other.worker)
      else { return false }
      return levels.allSatisfy { ladder[$0].contains(rung) }
    }
    return cheaper.map {
      "\(transition.worker) was terminated in the foreground before \($0.worker)"
    }
  }

  private mutating func check(_ report: JetsamReport) -> String? {
    let victimEntries = report.entries.filter { $0.victimBecause != nil }
    seen.insert("report")
    // The report names a worker once, which may have restarted and been a victim twice.
    guard
      Set(victimEntries.map(\.worker)) == Set(victims).intersection(report.entries.map(\.worker))
    else {
      return "the report names \(victimEntries.map(\.worker)), and \(victims) were terminated"
    }
    victims = []
    return victimEntries.isEmpty ? "a report without a victim" : nil
  }

  private func checkStates(_ engine: Engine) -> String? {
    for (worker, recorded) in states where engine.state(of: worker) ?? .terminated != recorded {
      return "\(worker) changed its state without a transition"
    }
    return engine.overlookedSleeper.map { "\($0) isn't hibernated though nothing prevents it" }
  }

  /// Checks, after the load has ended, that nothing is stuck.
  func finalComplaint(_ engine: Engine, at now: Instant) -> String? {
    if !open.isEmpty {
      let states = engine.snapshots().map { "\($0.worker) \($0.state)" }
      return "requests \(open.sorted()) were never answered; \(states)"
    }
    let isRoomy = engine.available.bytes * 4 > engine.budget.bytes
    if engine.pressure != .normal, isRoomy {
      return "the pressure is still \(engine.pressure)"
    }
    if let odd = engine.snapshots().first(where: { !(0...100).contains($0.band) }) {
      return "\(odd.worker) has band \(odd.band)"
    }
    // One operation may be in progress now, such as a hibernation that is tried again.
    let stuck = engine.snapshots().filter {
      [.suspending, .hibernating, .resuming].contains($0.state)
        && now > $0.since + Self.maxTransit
    }
    if let lost = accounting.unanswered(at: now) ?? together.finalComplaint { return lost }
    return stuck.isEmpty ? nil : "stuck: \(stuck.map { "\($0.worker) \($0.state)" })"
  }
}

extension Event {
  /// Returns true for the events after which a watchdog may end the worker.
  fileprivate func isWatchdogReport(of worker: WorkerID) -> Bool {
    switch self {
    case .watchdogSeen(worker, _), .watchdogTriggered(worker): true
    default: false
    }
  }
}

extension WorkerCondition {
  fileprivate var name: String {
    switch self {
    case .underWay: "under way"
    case .running: "running"
    case .suspended: "suspended"
    case .hibernated: "hibernated"
    case .unverifiable: "unverifiable"
    }
  }
}
