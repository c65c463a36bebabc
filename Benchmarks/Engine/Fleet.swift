import Lifecycle
import Policy
import Simulation

/// An engine with many workers, and a shell that performs every directive at once, so that what is
/// measured is the engine.
struct Fleet {
  private(set) var engine: Engine
  private(set) var now = Instant.zero
  private var random = SplitMix64(seed: 1)
  private let names: [WorkerID]
  private var backlog: [Event] = []
  private var requests: Request.ID = 0

  init(_ count: Int, _ policy: LifecyclePolicy) {
    engine = Engine(policy: policy)
    names = (0..<count).map { WorkerID("worker-\($0)") }
    let profile = WorkerProfile(policy: policy, canShed: true)
    for name in names {
      perform(engine.handle(.added(name, profile), at: now))
      request(.start, name)
      catchUp()
    }
  }

  /// A million bytes apiece, and as much again by chance.
  private mutating func size() -> ByteCount {
    ByteCount(4_000_000 + Int64(random.next() % 12_000_000))
  }

  private mutating func request(_ verb: Request.Verb, _ worker: WorkerID) {
    requests += 1
    backlog.append(.request(Request(id: requests, verb: verb, worker: worker)))
  }

  mutating func catchUp() {
    while !backlog.isEmpty { perform(engine.handle(backlog.removeFirst(), at: now)) }
  }

  /// Lets all workers fall asleep.
  mutating func rest(_ time: Duration) {
    let end = now + time
    while let next = engine.nextDeadline, next <= end {
      now = next
      perform(engine.handle(.deadline, at: now))
      catchUp()
    }
    now = end
  }

  mutating func reading(available percent: Int64) -> Event {
    let total = ByteCount.gigabytes(64)
    return .memory(
      MemoryReading(total: total, available: ByteCount(total.bytes * percent / 100)))
  }

  /// Each worker is used about once a minute, whatever their number; one event in a hundred is a
  /// reading of the memory.
  mutating func nextEvent(available percent: Int64) -> Event {
    if !backlog.isEmpty { return backlog.removeFirst() }
    now = now + .nanoseconds(60_000_000_000 / Int64(names.count))
    if let due = engine.nextDeadline, due <= now { return .deadline }
    let worker = names[Int(random.next() % UInt64(names.count))]
    switch random.next() % 100 {
    case 0: return reading(available: percent)
    case ..<20: return .footprint(worker, size())
    case ..<30:
      requests += 1
      let verb: Request.Verb = random.next() % 2 == 0 ? .foreground : .background
      return .request(Request(id: requests, verb: verb, worker: worker))
    default:
      return engine.state(of: worker)?.runs == true
        ? .activity(worker) : .wakeNeeded(worker, "a connection")
    }
  }

  /// Handles it, and gives back how long the decision took, its next deadline included, in
  /// nanoseconds; and what was decided.
  mutating func decide(_ event: Event) -> (nanoseconds: UInt64, directives: [Directive]) {
    let start = Clock.nanoseconds
    let directives = engine.handle(event, at: now)
    let next = engine.nextDeadline
    let time = Clock.nanoseconds - start
    precondition(next.map { $0 > now } ?? true)
    return (time, directives)
  }

  mutating func perform(_ directives: [Directive]) {
    for directive in directives {
      switch directive {
      case .launch(let worker): backlog += [.launched(worker), .ready(worker)]
      case .shed(let worker, _, _): backlog.append(.shedAnswered(worker))
      case .finishShed(let worker):
        backlog.append(.shedFinished(worker, before: size(), after: size()))
      case .suspend(let worker): backlog.append(.suspended(worker))
      case .hibernate(let worker):
        let result = HibernationResult(
          footprintBefore: size(), footprintAfter: .kilobytes(8), imageSize: .megabytes(2),
          duration: .milliseconds(30))
        backlog.append(.hibernated(worker, result))
      case .resume(let worker): backlog.append(.resumed(worker, .milliseconds(12)))
      case .terminate(let worker), .kill(let worker):
        backlog.append(.exited(worker, .exited(0)))
        request(.start, worker)
      case .measure(let worker): backlog.append(.footprint(worker, size()))
      default: break
      }
    }
  }

  mutating func wait(_ time: Duration) { now = now + time }
}
