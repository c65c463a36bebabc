import Lifecycle
import Policy

@testable import Simulation

/// Explores a few workers and every order of the events for them. Seeds try many cases by chance;
/// this tries all, up to a depth. The depth is the number of steps from the moment at which all
/// workers are being launched. Each step is one of: an outstanding outcome, its failure, an exit, a
/// wake, a request (start, foreground, background, suspend, hibernate or stop), memory becoming
/// short or plentiful, or time passing until the next deadline.
struct SmallWorld: Hashable {
  private var engine: Engine
  private var now = Instant.zero
  private var bodies: [WorkerID: SimulatedWorker.Body] = [:]
  /// The directives whose outcome is outstanding.
  private var open: Set<Directive> = []
  private var checker = Invariants()
  private var requests: Request.ID = 0
  private var isShort = false
  private var trail: [Event] = []

  struct Exploration {
    /// The number of different states of the world, including the first.
    var states = 0
    /// The number of steps between these states.
    var steps = 0
    /// The number of steps in a row that are covered: every order of that many events has been
    /// tried, except those that lead through a state that was tried already.
    var depth = 0
    /// True if no event leads to a new state.
    var isComplete = false
  }

  /// Explores the world until a depth or a number of states is reached.
  ///
  /// - Parameters:
  ///   - wakesTogether: each worker wakes the next one, and the last one the first.
  ///   - limits: of the first worker.
  /// - Throws: `SmallWorldFailure`, with the events that lead to it.
  static func explore(
    workers: Int, depth: Int, maxStates: Int, policy: LifecyclePolicy = LifecyclePolicy(),
    wakesTogether: Bool = false, limits: FootprintLimits? = nil
  ) throws(SmallWorldFailure) -> Exploration {
    var exploration = Exploration()
    var visited: Set<SmallWorld> = []
    var frontier = [try SmallWorld(workers, policy, wakesTogether: wakesTogether, limits: limits)]
    visited.insert(frontier[0])
    search: for level in 1...depth {
      var next: [SmallWorld] = []
      for world in frontier {
        if visited.count >= maxStates { break search }
        for event in world.possible {
          exploration.steps += 1
          let after = try world.step(event)
          guard visited.insert(after).inserted else { continue }
          next.append(after)
        }
      }
      exploration.depth = level
      frontier = next
      if next.isEmpty { break }
    }
    exploration.isComplete = frontier.isEmpty
    exploration.states = visited.count
    return exploration
  }

  private init(
    _ workers: Int, _ policy: LifecyclePolicy, wakesTogether: Bool,
    limits: FootprintLimits?
  ) throws(SmallWorldFailure) {
    engine = Engine(policy: policy)
    for number in 0..<workers {
      let name = WorkerID("w\(number)")
      bodies[name] = .absent
      var profile = WorkerProfile(policy: policy, canShed: number == 0)
      if number == 0 { profile.footprintLimits = limits }
      if wakesTogether { profile.wakeWith = [WorkerID("w\((number + 1) % workers)")] }
      self = try step(.added(name, profile))
    }
    self = try step(memory(isShort: false))
    for name in bodies.keys.sorted() { self = try step(request(.start, name)) }
  }

  // MARK: possible events

  private var possible: [Event?] {
    var events: [Event?] = open.flatMap(outcomes)
    for (name, body) in bodies.sorted(by: { $0.key < $1.key }) {
      if body != .absent { events.append(.exited(name, .signaled(9))) }
      if body == .stopped || body == .evicted { events.append(.wakeNeeded(name, "data")) }
      let verbs: [Request.Verb] =
        body == .absent ? [.start] : [.foreground, .background, .suspend, .hibernate, .stop]
      events += verbs.map { request($0, name) }
    }
    events.append(memory(isShort: !isShort))
    // A nil means that time passes until the next deadline.
    events.append(nil)
    return events
  }

  /// The result of an inspection: an operation is in progress until its outcome comes.
  private func condition(of worker: WorkerID) -> WorkerCondition {
    let isBusy = open.contains { directive in
      switch directive {
      case .suspend(worker), .hibernate(worker), .resume(worker): true
      default: false
      }
    }
    if isBusy { return .underWay }
    switch bodies[worker] {
    case .stopped: return .suspended
    case .evicted: return .hibernated
    default: return .running
    }
  }

  private func outcomes(of directive: Directive) -> [Event] {
    switch directive {
    case .launch(let worker): [.launched(worker), .launchFailed(worker, "no such file")]
    case .shed(let worker, _, _): [.shedAnswered(worker)]
    case .finishShed(let worker):
      [.shedFinished(worker, before: .megabytes(8), after: .megabytes(6))]
    case .suspend(let worker): [.suspended(worker), .suspendFailed(worker, "a child ran")]
    case .hibernate(let worker):
      [
        .hibernated(worker, Self.result),
        .hibernateFailed(worker, "no space", permanent: false),
      ]
    case .resume(let worker):
      [
        .resumed(worker, .milliseconds(12)), .resumeFailed(worker, "no memory", intact: true),
        .resumeFailed(worker, "checksum", intact: false),
      ]
    case .measure(let worker): [.footprint(worker, .megabytes(8))]
    case .inspect(let worker): [.found(worker, condition(of: worker))]
    case .checkSafePoint(let worker): [.fileLocks(worker, held: 0)]
    case .checkWatchdog(let worker):
      [.watchdogSeen(worker, at: now), .watchdogSeen(worker, at: nil)]
    // An exit is possible at any time, so `possible` adds it.
    default: []
    }
  }

  private static let result = HibernationResult(
    footprintBefore: .megabytes(8), footprintAfter: .kilobytes(8), imageSize: .megabytes(2),
    duration: .milliseconds(30))

  private func request(_ verb: Request.Verb, _ worker: WorkerID) -> Event {
    .request(Request(id: requests + 1, verb: verb, worker: worker))
  }

  private func memory(isShort: Bool) -> Event {
    .memory(
      MemoryReading(total: .megabytes(1000), available: .megabytes(isShort ? 30 : 500)))
  }

  // MARK: a step

  /// Returns the world after an event. `nil`: the next deadline comes.
  private func step(_ chosen: Event?) throws(SmallWorldFailure) -> SmallWorld {
    var world = self
    let event = chosen ?? .deadline
    if chosen == nil { world.now = engine.nextDeadline ?? now + .seconds(60) }
    if case .memory = event { world.isShort = trail.isEmpty ? false : !isShort }
    if case .request = event { world.requests += 1 }
    world.trail.append(event)
    world.apply(event)
    let directives = world.engine.handle(event, at: world.now)
    let complaint =
      world.checker.check(
        event, directives, before: engine.pressure, after: world.engine, at: world.now)
      ?? world.checker.checkNothingLeft(world.engine, at: world.now)
    if let complaint { throw SmallWorldFailure(what: complaint, trail: world.trail) }
    for directive in directives where !world.outcomes(of: directive).isEmpty {
      world.open.insert(directive)
    }
    return world
  }

  /// Applies an event to the bodies and to the outstanding directives.
  private mutating func apply(_ event: Event) {
    guard let worker = event.subject else { return }
    open = open.filter { directive in
      guard directive.worker == worker else { return true }
      if event.isExit { return false }
      return !outcomes(of: directive).contains(event)
    }
    switch event {
    case .launched: bodies[worker] = .running
    case .suspended: bodies[worker] = .stopped
    case .hibernated: bodies[worker] = .evicted
    case .resumed: bodies[worker] = .running
    case .exited, .launchFailed: bodies[worker] = .absent
    default: break
    }
  }

  // MARK: the same state

  /// Two worlds are equal if their states are. The events that led to them and the checks don't
  /// count.
  static func == (left: SmallWorld, right: SmallWorld) -> Bool {
    left.now == right.now && left.bodies == right.bodies && left.open == right.open
      && left.isShort == right.isShort && left.engine == right.engine
  }

  func hash(into hasher: inout Hasher) {
    hasher.combine(now)
    hasher.combine(bodies)
    hasher.combine(open.count)
    hasher.combine(engine.nextDeadline)
    for worker in bodies.keys.sorted() { hasher.combine(engine.state(of: worker)) }
  }
}

/// An invariant that doesn't hold after a sequence of events.
struct SmallWorldFailure: Error, CustomStringConvertible {
  var what: String
  /// The events that lead to the failure.
  var trail: [Event]

  var description: String {
    "\(what), after:\n" + trail.map { "  \($0)" }.joined(separator: "\n")
  }
}
