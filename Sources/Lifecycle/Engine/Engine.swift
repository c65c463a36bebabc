import Policy

/// The part of Dormouse that decides. Events and the time go in, directives come out.
///
/// Every event is handled in the same three steps. First the event is *recorded*: it changes facts.
/// Then the engine *decides* what the facts and the time call for, due deadlines included, until
/// nothing changes any more. Last, the directives are returned. So an answer that comes at the very
/// instant of its deadline still counts. Decisions depend on facts and the time only, never on
/// which event happened to arrive. So no timer can be lost: `nextDeadline` is merely the next
/// instant at which time alone could change a decision.
///
/// Only workers that have changed or are due are examined: `WorkerTable` records every change, and
/// keeps the next deadline of each worker. That depends on one rule for `advance`: it may read the
/// worker, the time as far as the worker's `considerDeadlines` covers it, and the policy. A rule
/// that reads any other fact has to mark the workers concerned when that fact changes.
///
/// Two kinds of policy apply. The engine's policy has the rules of the machine (pressure, ladder,
/// order of termination, size of the foreground, budget, mode). Each worker's profile has the rules
/// of its life cycle (background, hibernate, watchdog, grace, `foreground.mode`, mode).
public struct Engine: Codable, Sendable, Equatable {
  /// Machine-wide rules: pressure, ladder, order of termination, foreground.
  @SharedPolicy public private(set) var policy: LifecyclePolicy

  var workers = WorkerTable()
  var memory = MemoryState()
  var gauge = PressureGauge()
  /// The level that the operator has set. Its time may be over.
  var pressureSet: SetPressure?
  var ladderState = LadderState()
  var disk: DiskReading?
  /// The rate learned from all workers, after the latest resume. Decisions use `resumeRate`, which
  /// follows in steps of a tenth.
  var latestResumeRate = ResumeRate()
  var resumeRate = ResumeRate()
  /// The time of the latest event. It never decreases.
  var now = Instant.zero
  /// The directives of the current call of `handle` so far.
  var directives: [Directive] = []
  /// Counts decisions, including those without a directive: a fulfilled goal, a step of the ladder.
  var decisions = 0
  /// What an earlier engine has learned about workers that aren't declared here yet.
  var remembered: [WorkerID: LearnedWorker]?
  /// Something changed outside `handle`.
  var reviewDue = false

  /// An engine without workers.
  public init(policy: LifecyclePolicy) { self.policy = policy }

  /// Records an event and decides what follows from it. Returns the directives in the order in
  /// which they are to be performed. A time before that of the latest event counts as the latest.
  public mutating func handle(_ event: Event, at now: Instant) -> [Directive] {
    self.now = max(self.now, now)
    reviewDue = false
    workers.markDue(at: self.now)
    record(event)
    decideUntilStable()
    refresh()
    workers.removeForgotten()
    defer { (directives, decisions) = ([], 0) }
    return directives
  }

  /// Replaces the machine-wide rules. They apply from the next event on, and `nextDeadline` is now.
  public mutating func setPolicy(_ policy: LifecyclePolicy) {
    self.policy = policy
    reviewAll()
  }

  /// An engine that examines every worker again with the next event. It has to decide as this one
  /// does: tests compare the two.
  public func reviewed() -> Engine {
    var other = self
    other.reviewAll()
    return other
  }

  private mutating func reviewAll() {
    workers.markAll()
    reviewDue = true
  }

  /// More rounds than any chain of steps needs. The longest chain of a worker, from the foreground
  /// to a refused hibernation, takes six. The simulation checks that nothing is left undone.
  private static let maxRounds = 64

  private mutating func decideUntilStable() {
    for _ in 0..<Self.maxRounds {
      let before = decisions
      advancePending()
      refresh()
      updatePressure()
      climbLadder()
      if decisions == before { return }
    }
  }

  /// Examines the pending workers in the order of names, so that every run is the same. A worker
  /// that decides something is examined again in the next round. A worker that an earlier one
  /// changes is examined in this round.
  private mutating func advancePending() {
    var start = 0
    while let index = workers.popPending(from: start) {
      let before = decisions
      advance(index)
      if decisions != before { workers.markPending(index) }
      start = index + 1
    }
  }

  private mutating func advance(_ index: Int) {
    expireProtection(index)
    guard workers[index].profile.leader == nil else { return advanceLed(index) }
    advanceWatchdog(index)
    switch workers[index].state {
    case .launching: advanceLaunching(index)
    case .foreground: advanceForeground(index)
    case .background: advanceBackground(index)
    case .suspended: advanceSuspended(index)
    case .hibernated: advanceHibernated(index)
    case .terminating: advanceTerminating(index)
    case .suspending, .hibernating, .resuming: advanceTransit(index)
    case .terminated: break
    }
    // The limits follow the state: a task whose time has just ended doesn't keep the worker in use
    // any more.
    advanceFootprintLimits(index)
    advanceShed(index)
    advanceTrim(index)
  }
}

extension Engine {
  func index(of worker: WorkerID) -> Int? { workers.index(of: worker) }

  /// Updates what `WorkerTable` derives from its workers.
  mutating func refresh() {
    workers.refresh(
      WorkerView(
        now: now, mode: policy.mode, episode: gauge.episode, level: actingLevel,
        warnOncePer: policy.pressure.warnOncePer))
  }

  mutating func emit(_ directive: Directive) {
    directives.append(directive)
    decisions += 1
  }

  /// Changes a worker's state and reports it. No other function does.
  mutating func move(_ index: Int, to state: WorkerState, _ cause: Cause) {
    let from = workers[index].state
    workers[index].enter(state, cause, at: now)
    emit(
      .transition(
        Transition(worker: workers[index].id, from: from, to: state, cause: cause, at: now)))
  }
}
