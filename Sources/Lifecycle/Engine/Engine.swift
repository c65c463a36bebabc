import Policy

/// The engine: events and the time in, directives out.
///
/// Every event is handled in the same three steps. First the event is *recorded*: it changes
/// facts. Then everything that the facts and the time now call for is *performed*, due deadlines
/// included, until nothing changes any more. So an answer that comes at the very instant of its
/// deadline still counts. Decisions depend on facts and the time only, never on which event
/// happened to arrive, so no timer can be lost: `nextDeadline` merely says when the passing of
/// time alone could change a decision.
///
/// Only workers that have changed or are due are examined: `WorkerTable` notices every change, and
/// keeps the next instant of each worker. That rests on one rule for `advance`: it may depend on the
/// worker, on the time as far as `deadlines` covers it, and on the policy. A rule that depends on any
/// other fact has to mark the workers concerned when that fact changes.
///
/// Two kinds of policy meet here. The engine's own gives the rules of the machine (pressure,
/// ladder, order of termination, size of the foreground, budget, mode); each worker's profile gives
/// the knobs of its life (background, hibernate, watchdog, grace, `foreground.mode`, mode).
public struct Engine: Codable, Sendable, Equatable {
  /// Machine-wide rules: pressure, ladder, termination order, foreground.
  @SharedPolicy public private(set) var policy: LifecyclePolicy

  var workers = WorkerTable()
  var memory = MemoryState()
  var gauge = PressureGauge()
  /// The level that the operator has set; its time may be over.
  var pressureSet: SetPressure?
  var ladderState = LadderState()
  var disk: DiskReading?
  /// Learned from all workers: the latest value, and the one that decisions rest on, which follows in
  /// steps.
  var latestResumeRate = ResumeRate()
  var resumeRate = ResumeRate()
  /// The time of the latest event. It never decreases.
  var now = Instant.zero
  /// What the current call of `handle` has decided so far.
  var directives: [Directive] = []
  /// Counts decisions, including those without a directive: a goal reached, a step of the ladder.
  var decisions = 0
  /// What an earlier engine has learned of workers that aren't declared here yet.
  var remembered: [WorkerID: LearnedWorker]?
  /// Something changed outside `handle`.
  var reviewDue = false

  public init(policy: LifecyclePolicy) { self.policy = policy }

  public mutating func handle(_ event: Event, at now: Instant) -> [Directive] {
    self.now = max(self.now, now)
    reviewDue = false
    workers.markDue(at: self.now)
    record(event)
    decideUntilStable()
    refresh()
    workers.removeGone()
    defer { (directives, decisions) = ([], 0) }
    return directives
  }

  /// Replaces the machine-wide rules. They apply from the next event on; `nextDeadline` asks for
  /// one at once.
  public mutating func setPolicy(_ policy: LifecyclePolicy) {
    self.policy = policy
    reviewAll()
  }

  /// An engine that examines every worker again with the next event. It has to decide as this one:
  /// tests compare the two.
  public func reviewed() -> Engine {
    var other = self
    other.reviewAll()
    return other
  }

  private mutating func reviewAll() {
    workers.markAll()
    reviewDue = true
  }

  /// More rounds than any chain of steps needs: a worker's longest chain, from the foreground to a
  /// refused hibernation, takes six. The simulation checks that nothing is left undone.
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

  /// In the order of names, so that every run is the same. A worker that decides something is examined
  /// again in the next round. A worker that is changed by an earlier one is examined in this round.
  private mutating func advancePending() {
    var start = 0
    while let index = workers.takePending(from: start) {
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
    // A task whose time was over a moment ago doesn't keep the worker in use any more.
    advanceFootprintLimits(index)
    advanceShed(index)
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

  /// The one place where a worker changes its state.
  mutating func move(_ index: Int, to state: WorkerState, _ cause: Cause) {
    let from = workers[index].state
    workers[index].enter(state, cause, at: now)
    emit(
      .transition(
        Transition(worker: workers[index].id, from: from, to: state, cause: cause, at: now)))
  }
}
