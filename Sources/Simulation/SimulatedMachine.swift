import Lifecycle
import Policy

/// A machine whose behaviour comes from a seed. It performs directives late, badly or not at all.
/// Its workers grow and end at random, and its users send requests at random. It drives the same
/// engine as the daemon, and checks it after every event.
public struct SimulatedMachine {
  public let seed: UInt64
  var random: SplitMix64
  var engine: Engine
  var now = Instant.zero
  /// The latest time that the engine has got.
  var clock = Instant.zero
  var workers: [WorkerID: SimulatedWorker] = [:]
  var names: [WorkerID] = []
  var pending: [PendingEvent] = []
  var scheduled = 0
  var nextRequest: Request.ID = 1
  /// The memory that other programs of the host use.
  var usedByOthers = ByteCount.megabytes(64)
  var checker: Invariants
  /// The last events. They are formatted only if something fails.
  private var history: [(at: Instant, event: Event, directives: [Directive])] = []
  var recording: SimulationRecording
  /// The percentage of steps at which a worker ends, 0–100 %.
  let deadliness: Int
  public private(set) var events = 0
  /// Called with each observation, for journals and other recorders.
  public var observer: ((Observation) -> Void)?

  /// The simulated time under load. Afterwards no new stimuli come, and all operations must end.
  static let load = Duration.seconds(20)
  static let drainStep = Duration.seconds(60)
  /// True after the load: no further message is lost.
  var isDraining = false
  static let hostMemory = ByteCount.megabytes(256)

  public init(seed: UInt64) {
    self.seed = seed
    random = SplitMix64(seed: seed)
    deadliness = random.pick([0, 0, 0, 10])
    engine = Engine(policy: .random(using: &random))
    recording = SimulationRecording(policy: engine.policy, using: &random)
    checker = Invariants()
  }

  /// The cases that occurred, so that a test can check that they were covered.
  public var seen: Set<String> { checker.seen }

  /// Runs the machine until the load has ended and all operations have ended.
  ///
  /// - Throws: `SimulationFailure`, which names the seed.
  public mutating func run() throws(SimulationFailure) {
    for number in 0..<(2 + Int(random.next() % 5)) {
      let name = WorkerID("w\(number)")
      names.append(name)
      workers[name] = SimulatedWorker()
      try deliver(.added(name, .random(from: engine.policy, using: &random)))
    }
    let end = Instant.zero + Self.load
    while now < end {
      let stimulus = now + random.duration(upTo: .milliseconds(900))
      try advance(to: min(stimulus, end))
      if let event = nextStimulus() { try deliver(event) }
    }
    usedByOthers = .zero
    isDraining = true
    for _ in 0..<4 {
      try deliver(.memory(reading))
      try advance(to: now + Self.drainStep)
    }
    let complaint = checker.finalComplaint(engine, at: now) ?? recording.check(engine)
    if let complaint { throw failure(complaint) }
  }

  /// Advances the time, and delivers outcomes and deadlines in their order.
  private mutating func advance(to target: Instant) throws(SimulationFailure) {
    while true {
      let outcome = pending.indices.min {
        (pending[$0].at, pending[$0].order) < (pending[$1].at, pending[$1].order)
      }
      let outcomeAt = outcome.map { pending[$0].at }
      let deadline = engine.nextDeadline
      guard let next = [outcomeAt, deadline].compactMap({ $0 }).min(), next <= target else { break }
      now = max(now, next)
      if let outcome, outcomeAt == next {
        let message = pending.remove(at: outcome)
        if let event = resolve(message) { try deliver(event) }
      } else {
        try deliver(.deadline)
      }
    }
    now = max(now, target)
    // No deadline was due, so the engine must have nothing to do.
    guard random.chance(25) else { return }
    var probe = engine
    let missed = probe.handle(.deadline, at: now)
    if !missed.isEmpty { throw failure("no deadline was reported for \(missed)") }
  }

  private mutating func deliver(_ event: Event) throws(SimulationFailure) {
    events += 1
    // A clock that steps back is ignored: the engine keeps its time.
    let eventTime = random.chance(1) ? now + (.zero - random.duration(upTo: .seconds(9))) : now
    let pressure = engine.pressure
    let sleep = sleepCheck(before: event)
    // A copy that an observer keeps makes the engine's next change expensive.
    let before = observer.map { _ in engine }
    let directives = engine.handle(event, at: eventTime)
    if let before {
      observer?(
        Observation(
          event: event, at: eventTime, directives: directives, before: before, after: engine))
    }
    recording.add(.event(event, eventTime), engine)
    clock = max(clock, eventTime)
    history.append((eventTime, event, directives))
    if history.count > 100 { history.removeFirst(50) }
    var complaint =
      checker.check(event, directives, before: pressure, after: engine, at: clock)
      ?? (eventTime == now ? sleep?.check(engine, at: now) : nil)
    if complaint == nil, random.chance(10) {
      complaint = checker.checkNothingLeft(engine, at: clock)
    }
    for directive in directives where complaint == nil { complaint = perform(directive) }
    if let complaint { throw failure(complaint) }
  }

  private func sleepCheck(before event: Event) -> SleepCheck? {
    guard case .machineSlept(let time) = event else { return nil }
    return SleepCheck(engine, at: now + (.zero - time))
  }

  private func failure(_ what: String) -> SimulationFailure {
    let lines = history.map { line in
      "\(line.at.nanoseconds / 1_000_000) ms  \(line.event)\n    → \(line.directives)"
    }
    return SimulationFailure(seed: seed, event: events, what: what, history: lines)
  }

  var reading: MemoryReading {
    let used = names.reduce(usedByOthers) { $0 + (workers[$1]?.resident ?? .zero) }
    return MemoryReading(
      total: Self.hostMemory, available: max(.zero, Self.hostMemory - used))
  }
}

/// An event that a simulated machine has sent to its engine, and its result. A journal records the
/// same of a real machine.
public struct Observation: Sendable {
  public var event: Event
  public var at: Instant
  public var directives: [Directive]
  /// The engine before the event.
  public var before: Engine
  /// The engine after the event.
  public var after: Engine
}

/// An invariant that was violated, with what is needed to reproduce it.
public struct SimulationFailure: Error, CustomStringConvertible {
  public var seed: UInt64
  /// The number of the event at which the invariant was violated.
  public var event: Int
  public var what: String
  /// The last events, and the engine's directives for them.
  public var history: [String]

  public var description: String {
    """
    seed \(seed), event \(event): \(what)
    replay: dormouse simulate --check --seed \(seed)
    or: DORMOUSE_SEED=\(seed) swift test --filter SeedTests
    \(history.joined(separator: "\n"))
    """
  }
}
