import Lifecycle
import Policy

/// Runs a recorded history under another policy, with two engines side by side. One plays the
/// journal as it was. The other gets only the events from outside: requests, memory, activity,
/// input for a sleeping worker, crashes. A `CostModel` estimates the outcomes of the other engine's
/// directives.
///
/// What can't be known is assumed as follows. The host's available memory is the recorded one,
/// corrected by the difference between the footprints of the two histories. A worker has the
/// footprint that it had when it ran in the journal. A use that needed a worker in the journal
/// needs it here, too: if it sleeps here it is woken, and if it was terminated for lack of memory
/// it is launched again. A worker crashes when it crashed in the journal, unless it sleeps here.
/// Stalls are as they were.
public struct WhatIf: Sendable {
  /// The other policy.
  public private(set) var policy: LifecyclePolicy
  private var overlay: PolicyOverlay
  private let budget: LifecyclePolicy.MemoryBudget
  var model: CostModel

  /// The tallies of the recorded history.
  public private(set) var recorded = Ledger()
  /// The tallies under the other policy.
  public private(set) var other = Ledger()
  public private(set) var divergence = Divergence()
  /// The number of launches that recorded uses required, because the other policy had terminated
  /// the workers.
  public private(set) var relaunches = 0
  /// The time that these launches and the wakes took.
  public private(set) var relaunchTime = Duration.zero
  /// The number of launches in the journal of workers that had been terminated for lack of memory.
  public private(set) var recordedRelaunches = 0
  /// The time that these launches would take by the same model.
  public private(set) var recordedRelaunchTime = Duration.zero
  private var endedForMemory: Set<WorkerID> = []

  var engine: Engine
  var pending: [Outcome] = []
  var scheduled = 0
  /// The footprint of each worker when it runs.
  var awake: [WorkerID: ByteCount] = [:]
  /// The number of file locks that the last check found, by worker.
  var locks: [WorkerID: Int] = [:]
  var lives: [WorkerID: Int] = [:]
  private var requestCount: Request.ID = 1 << 62
  private var now = Instant.zero

  /// An outcome that hasn't occurred yet.
  struct Outcome: Sendable {
    var at: Instant
    var order: Int
    var event: Event
    var life: Int
  }

  public init(policy: LifecyclePolicy, model: CostModel) throws {
    self.policy = policy
    self.model = model
    budget = policy.memory
    overlay = try PolicyOverlay(policy)
    engine = Engine(policy: policy)
  }

  /// Handles a step of the journal.
  ///
  /// - Parameter then: the journal's engine after the step.
  public mutating func visit(_ step: JournalStep, _ then: Engine) {
    advance(to: step.at)
    now = max(now, step.at)
    switch step.kind {
    case .began: begin(like: then, at: step.at)
    case .continued: break
    case .policy(let new):
      adoptBudget(of: new)
      engine.setPolicy(policy)
    case .event(let event):
      recorded.record(event, directives: step.directives, engine: then, at: step.at)
      for directive in step.directives {
        divergence.add(directive, isRecorded: true)
        countRelaunch(directive)
      }
      if case .footprint(let worker, let bytes) = event, then.state(of: worker)?.runs == true {
        awake[worker] = bytes
      }
      if case .fileLocks(let worker, let held) = event { locks[worker] = held }
      for event in translated(event, in: step, of: then) { deliver(event, at: step.at) }
    }
  }

  /// Ends the comparison. Call this after the last step.
  public mutating func finish() {
    recorded.addElapsedTime(at: now)
    other.addElapsedTime(at: now)
    divergence.finish()
  }

  private mutating func countRelaunch(_ directive: Directive) {
    switch directive {
    case .launch(let worker) where endedForMemory.remove(worker) != nil:
      recordedRelaunches += 1
      recordedRelaunchTime += model.launch(worker)
    case .transition(let transition) where transition.to == .terminated:
      if case .pressure = transition.cause { endedForMemory.insert(transition.worker) }
    default: break
    }
  }

  private mutating func begin(like then: Engine, at now: Instant) {
    engine = then
    adoptBudget(of: then.policy)
    engine.setPolicy(policy)
    (pending, lives) = ([], [:])
    recorded.begin(then, at: now)
    other.begin(then, at: now)
    divergence.forget()
    for worker in then.workerIDs {
      awake[worker] = awake[worker] ?? then.footprint(of: worker)
      guard let profile = then.profile(of: worker) else { continue }
      deliver(.profileChanged(worker, mapped(profile, under: then.policy)), at: now)
    }
    resumeTransits(at: now)
  }

  /// Adopts the recorded memory budget. A simulated device belongs to the machine and not to the
  /// policy, unless the policy names one.
  private mutating func adoptBudget(of recorded: LifecyclePolicy) {
    guard budget == .host, policy.memory != recorded.memory else { return }
    policy.memory = recorded.memory
    // A policy was read from text, so it can be written again.
    if let new = try? PolicyOverlay(policy) { overlay = new }
  }

  /// Returns the profile with the other policy, over which the worker's own keys are laid.
  private func mapped(_ profile: WorkerProfile, under base: LifecyclePolicy) -> WorkerProfile {
    var profile = profile
    profile.policy = overlay.policy(of: profile, over: base)
    return profile
  }

  // MARK: events from outside

  private mutating func translated(
    _ event: Event, in step: JournalStep, of then: Engine
  ) -> [Event] {
    switch event {
    case .added(let worker, let profile):
      return [.added(worker, mapped(profile, under: then.policy))]
    case .profileChanged(let worker, let profile):
      return [.profileChanged(worker, mapped(profile, under: then.policy))]
    case .adopted(let worker, let profile, let state):
      return [.adopted(worker, mapped(profile, under: then.policy), state)]
    case .request(let request): return translated(request, then)
    case .removed, .released, .moved, .stalled, .pressureSet, .disk, .purgeableOffered,
      .channelsChanged, .machineSlept:
      return [event]
    case .memory(let reading): return [.memory(corrected(reading, then))]
    case .footprint(let worker, _), .taskBegan(let worker, _, _), .taskEnded(let worker, _),
      .hold(let worker, _), .extendTimeout(let worker, _), .unhealthy(let worker, _),
      .watchdogInterval(let worker, _), .watchdogTriggered(let worker):
      return engine.state(of: worker)?.runs == true ? [event] : []
    case .activity(let worker): return needed(worker, "activity in the journal")
    case .worked(let worker):
      return engine.state(of: worker)?.runs == true
        ? [event] : needed(worker, "activity in the journal")
    case .timerDue(let worker, let reason):
      // The worker sleeps only in the journal. Here it is awake, so its timer needs no wake.
      return needed(worker, reason).filter { if case .wakeNeeded = $0 { true } else { false } }
        .map { _ in event }
    case .wakeNeeded(let worker, let reason): return needed(worker, reason)
    case .exited(let worker, _):
      let wasOurs = !step.directives.contains { directive in
        if case .transition(let transition) = directive, case .exited = transition.cause {
          true
        } else {
          false
        }
      }
      return !wasOurs && engine.state(of: worker)?.runs == true ? [event] : []
    case .watchdogSeen, .launched, .launchFailed, .ready, .shedAnswered, .shedFinished, .suspended,
      .fileLocks, .found, .purged, .purgeFailed, .suspendFailed, .staysAwake, .hibernated,
      .hibernateFailed,
      .resumed,
      .resumeFailed, .trimmed, .trimFailed, .trimLost, .filled, .fillFailed, .swapped, .deadline:
      // These are outcomes of decisions in the journal.
      return []
    }
  }

  private mutating func needed(_ worker: WorkerID, _ reason: String) -> [Event] {
    switch engine.state(of: worker) {
    case .launching, .foreground, .background: return [.activity(worker)]
    case .terminated: return [relaunch(worker)]
    case .suspending, .suspended, .hibernating, .hibernated: return [.wakeNeeded(worker, reason)]
    case .resuming, .terminating, nil: return []
    }
  }

  /// Launches the worker first, if the request is for a worker that has ended here and not in the
  /// journal.
  private mutating func translated(_ request: Request, _ then: Engine) -> [Event] {
    let isGone = engine.state(of: request.worker) == .terminated
    let wasThere = then.state(of: request.worker).map { $0 != .terminated } ?? false
    guard isGone, wasThere, request.verb == .foreground || request.verb == .wake else {
      return [.request(request)]
    }
    return [relaunch(request.worker), .request(request)]
  }

  private mutating func relaunch(_ worker: WorkerID) -> Event {
    relaunches += 1
    relaunchTime += model.launch(worker)
    requestCount += 1
    return .request(Request(id: requestCount, verb: .start, worker: worker))
  }

  private func corrected(_ reading: MemoryReading, _ then: Engine) -> MemoryReading {
    func held(_ engine: Engine) -> ByteCount {
      engine.workerIDs.reduce(.zero) { sum, worker in
        engine.state(of: worker)?.isAlive == true ? sum + engine.resident(of: worker) : sum
      }
    }
    var reading = reading
    let available = reading.available + held(then) - held(engine)
    reading.available = min(max(.zero, available), reading.total)
    return reading
  }

  // MARK: the other engine's time

  private mutating func advance(to target: Instant) {
    while true {
      let index = pending.indices.min {
        (pending[$0].at, pending[$0].order) < (pending[$1].at, pending[$1].order)
      }
      let outcome = index.map { pending[$0].at }
      guard let next = [outcome, engine.nextDeadline].compactMap({ $0 }).min(), next <= target
      else { return }
      if let index, outcome == next {
        let outcome = pending.remove(at: index)
        guard let worker = outcome.event.subject, lives[worker, default: 0] == outcome.life else {
          continue
        }
        deliver(outcome.event, at: next)
      } else {
        deliver(.deadline, at: next)
      }
    }
  }

  private mutating func deliver(_ event: Event, at now: Instant) {
    let directives = engine.handle(event, at: now)
    other.record(event, directives: directives, engine: engine, at: now)
    for directive in directives {
      divergence.add(directive, isRecorded: false)
      perform(directive, at: now)
    }
  }
}
