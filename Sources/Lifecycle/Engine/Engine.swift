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
/// Only who has changed or is due is looked at: `WorkerTable` notices every change, and keeps the
/// next instant of each. That rests on one rule for whatever `advance` does: it may look at the
/// worker, at the time as far as `deadlines` tells of it, and at the policy. A rule that looks at
/// any other fact has to mark the workers concerned when that fact changes.
///
/// Two kinds of policy meet here. The engine's own gives the rules of the machine (pressure,
/// ladder, order of termination, how many in front, budget, mode); each worker's profile gives
/// the knobs of its life (background, hibernate, watchdog, grace, `foreground.mode`, mode).
public struct Engine: Codable, Sendable, Equatable {
  /// Machine-wide rules: pressure, ladder, termination order, foreground.
  public private(set) var policy: LifecyclePolicy

  var workers = WorkerTable()
  var memory = MemoryState()
  var gauge = PressureGauge()
  /// Somebody's word on the level; it may be over.
  var pressureSet: SetPressure?
  var ladderState = LadderState()
  var disk: DiskReading?
  /// Learned of all workers: the latest, and what decisions rest on, which follows in steps.
  var latestResumeRate = ResumeRate()
  var resumeRate = ResumeRate()
  /// The time of the latest event. It never goes back.
  var now = Instant.zero
  /// What the current call of `handle` has decided so far.
  var directives: [Directive] = []
  /// Counts decisions, those too that no directive tells of: a goal reached, a step of the ladder.
  var decisions = 0
  /// What an earlier engine has learned of workers that haven't been named here yet.
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

  /// An engine that looks at everybody again with the next event. It has to decide as this one:
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

  /// More rounds than any chain of steps needs: a worker's longest, from the foreground to a
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

  /// In the order of names, so that every run is the same. Who decides something is looked at again
  /// in the next round, and who is changed by another who comes before it, in this one.
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
    advanceShed(index)
  }
}

extension Engine {
  func index(of worker: WorkerID) -> Int? { workers.index(of: worker) }

  /// Brings up to date what `WorkerTable` derives from its workers.
  mutating func refresh() {
    workers.refresh(
      WorkerView(
        now: now, mode: policy.mode, episode: gauge.episode,
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
