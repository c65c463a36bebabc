import Lifecycle
import Policy

// These functions make events from outside, which the engine hasn't caused.

extension SimulatedMachine {
  mutating func nextStimulus() -> Event? {
    let worker = random.pick(names)
    let body = workers[worker]?.body ?? .absent
    // The worker was given back to its supervisor. It is declared or adopted again.
    guard engine.state(of: worker) != nil else { return comeBack(worker) }
    if let slept = suspendToRAM() { return slept }
    if let event = moveOrRefault(worker) { return event }
    if random.chance(8) { return rarity(worker, body) }
    // The machine slept, or the clock was set, so the time jumps forward.
    if random.chance(1) {
      now = now + random.pick([.seconds(30), .seconds(3600), .seconds(86_400)])
    }
    switch random.next() % 100 {
    case ..<35: return request(worker)
    case ..<50: return grow(worker)
    case ..<70: return .memory(changeHost())
    case ..<75: return .stalled(random.pick([.normal, .warning, .urgent, .critical]))
    case ..<80: return body == .running ? .activity(worker) : nil
    case ..<82: return body == .running ? .worked(worker) : nil
    case ..<86:
      return body == .stopped || body == .evicted ? .wakeNeeded(worker, "a connection") : nil
    case ..<89:
      return body == .stopped || body == .evicted ? .timerDue(worker, "a time-out") : nil
    case ..<94:
      let limit: Duration? = random.pick([.zero, .seconds(5), .seconds(9999), nil])
      return body == .running ? .taskBegan(worker, task: "save", limit: limit) : nil
    case ..<97:
      if body != .absent { die(worker, .signaled(11), within: .milliseconds(100)) }
      return nil
    case ..<98: return .profileChanged(worker, .random(from: engine.policy, using: &random))
    case ..<99:
      let policy = LifecyclePolicy.random(using: &random)
      engine.setPolicy(policy)
      recording.add(.policy(policy), engine)
      return .deadline
    default: return body == .running ? .ready(worker) : nil
    }
  }

  /// Lets the machine sleep. The daemon learns for how long before anything else happens.
  private mutating func suspendToRAM() -> Event? {
    var other = random.separated()
    guard other.chance(2) else { return nil }
    let time: Duration = other.pick([.milliseconds(300), .seconds(9), .seconds(3600)])
    // Operations in progress continue after the sleep.
    for index in pending.indices { pending[index].at = pending[index].at + time }
    now = now + time
    return .machineSlept(time)
  }

  /// Requests a trim or a fill, measures what is in swap, or loses a trim.
  private mutating func moveOrRefault(_ worker: WorkerID) -> Event? {
    var other = random.separated(by: 43)
    guard other.chance(6) else { return nil }
    if other.chance(60) { return refault(worker) }
    if other.chance(10) { return loseTrim(worker) }
    defer { nextRequest += 1 }
    let verb: Request.Verb = other.chance(70) ? .trim : .fill
    return .request(Request(id: nextRequest, verb: verb, worker: worker))
  }

  /// Returns a rare event: an announcement of a worker, or a reading of the disk.
  private mutating func rarity(_ worker: WorkerID, _ body: SimulatedWorker.Body) -> Event? {
    switch random.next() % 15 {
    case 14:
      guard body == .running else { return nil }
      return random.chance(10)
        ? .watchdogTriggered(worker)
        : .watchdogInterval(worker, random.pick([.zero, .seconds(1), .seconds(30)]))
    case 13:
      guard body == .running else { return nil }
      return .channelsChanged(worker, canShed: random.chance(50), canAnswer: random.chance(50))
    case 12:
      return .pressureSet(
        random.pick(PressureLevel.allCases), for: random.pick([.zero, .seconds(1), .seconds(30)]))
    case 10: return body == .running ? .unhealthy(worker, "its probe failed") : nil
    case 11: return release(worker, body)
    case ..<3: return body == .running ? .hold(worker, random.chance(50)) : nil
    case ..<5:
      return body == .running ? .extendTimeout(worker, random.pick([.zero, .seconds(9)])) : nil
    case ..<8:
      guard body == .running, let footprint = workers[worker]?.footprint else { return nil }
      workers[worker]?.purgeable = ByteCount(footprint.bytes / random.pick([1, 2, 8]))
      return workers[worker].map { .purgeableOffered(worker, $0.purgeable) }
    default:
      return .disk(
        DiskReading(
          total: .gigabytes(1), free: .megabytes(random.pick([10, 60, 900])),
          images: .megabytes(random.pick([0, 100])),
          writtenToday: .megabytes(random.pick([0, 100, 100_000]))))
    }
  }

  /// Gives a worker back to its supervisor, which continues with it. No later event of the worker
  /// comes here.
  private mutating func release(_ worker: WorkerID, _ body: SimulatedWorker.Body) -> Event? {
    guard body == .running || body == .stopped || body == .evicted else { return nil }
    let life = (workers[worker]?.life ?? 0) + 1
    workers[worker] = SimulatedWorker()
    workers[worker]?.life = life
    return .released(worker)
  }

  private mutating func comeBack(_ worker: WorkerID) -> Event {
    let profile = WorkerProfile.random(from: engine.policy, using: &random)
    guard random.chance(50) else { return .added(worker, profile) }
    workers[worker]?.life += 1
    workers[worker]?.body = .running
    workers[worker]?.footprint = .kilobytes(random.pick([100, 20_000]))
    return .adopted(worker, profile, random.pick([.background, .foreground]))
  }

  private static let verbs = Request.Verb.allCases.filter {
    ![.protect, .unprotect, .trim, .fill].contains($0)
  }

  private mutating func request(_ worker: WorkerID) -> Event {
    let asleep = workers[worker]?.body == .absent
    // Without frequent starts, few events would occur.
    var verb = asleep && random.chance(80) ? .start : random.pick(Self.verbs)
    var other = random.separated()
    if other.chance(5) { verb = other.chance(60) ? .protect : .unprotect }
    let target = random.chance(2) ? WorkerID("absent") : worker
    defer { nextRequest += 1 }
    return .request(Request(id: nextRequest, verb: verb, worker: target))
  }

  private mutating func grow(_ worker: WorkerID) -> Event? {
    guard workers[worker]?.body == .running else { return nil }
    let footprint = ByteCount.kilobytes(random.pick([200, 5_000, 15_000, 40_000, 90_000]))
    workers[worker]?.footprint = footprint
    return .footprint(worker, footprint)
  }

  private mutating func changeHost() -> MemoryReading {
    usedByOthers = .megabytes(random.pick([10, 60, 120, 180, 240]))
    var other = random.separated()
    // Another program uses nearly all of the memory, so that no worker's end helps.
    if other.chance(15) { usedByOthers = Self.hostMemory - .megabytes(other.pick([0, 1, 3])) }
    var reading = reading
    if random.chance(30) {
      reading.someStall = random.pick([0, 5, 20, 60])
      reading.fullStall = random.pick([0, 0, 15])
    }
    // All tasks of another program wait for that program's own limit, while most of the memory is
    // available.
    if other.chance(10) {
      usedByOthers = .megabytes(10)
      reading.available = self.reading.available
      (reading.someStall, reading.fullStall) = (90, 90)
    }
    // The daemon is in a container whose limit is the total and the maximum of the available
    // memory.
    if other.chance(10) {
      reading.total = .megabytes(other.pick([64, 128]))
      reading.available = min(reading.available, reading.total)
    }
    return reading
  }
}
