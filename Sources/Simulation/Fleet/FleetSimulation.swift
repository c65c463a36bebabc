import Lifecycle
import Policy

/// Simulates thousands of workers on a machine. A trace drives them, and the daemon's engine
/// manages them. Only the machine is simulated, and it makes no mistakes, unlike
/// `SimulatedMachine`.
public struct FleetSimulation {
  let trace: Trace
  let machine: MachineModel
  let policy: LifecyclePolicy
  var engine: Engine
  /// Nanoseconds since the start.
  var now: Int64 = 0
  var workers: [FleetWorker]
  var numbers: [WorkerID: Int32] = [:]
  var steps = FleetStepQueue()
  var report: FleetReport
  var waits = WaitingTimes()
  var waited: [FleetReport.StateAtUse: Int64] = [:]

  var resident: Int64 = 0
  var usedByOthers: Int64 = 0
  /// The integral of the used memory over time until `countedUntil`, in byte-nanoseconds.
  var memoryTime = 0.0
  var countedUntil: Int64 = 0
  var peak: Int64 = 0
  var lastReading: MemoryReading?
  /// When the thread for hibernating and resuming is free again. There is one, as in the daemon.
  var mechanismFreeAt: Int64 = 0
  var imageBytes: Int64 = 0
  var writtenToday: Int64 = 0
  var day: Int64 = 0
  var samples = 0
  var nextRequest: Request.ID = 1
  /// Called with each event, its directives, and the engine after it, as a journal records them.
  public var observer: ((Event, [Directive], Engine, Instant) -> Void)?

  /// - Parameter profiles: the profiles of workers that need their own, for example for another
  ///   policy.
  public init(
    trace: Trace, machine: MachineModel, policy: LifecyclePolicy,
    profiles: [WorkerID: WorkerProfile] = [:]
  ) {
    self.trace = trace
    self.machine = machine
    self.policy = policy
    engine = Engine(policy: policy)
    report = FleetReport(
      policy: policy.name, order: policy.terminate.order.map(\.rawValue))
    var random = SplitMix64(seed: 7)
    workers = trace.workers.map { worker in
      let id = WorkerID(worker.name)
      let isAsked = random.unit() < machine.cooperating
      var profile =
        profiles[id]
        ?? WorkerProfile(policy: policy, importance: worker.importance, canShed: isAsked)
      profile.announcesReadiness = true
      return FleetWorker(
        id: id, footprint: worker.footprint.bytes, leak: worker.leak.bytes,
        launch: worker.launch, profile: profile)
    }
  }

  /// The memory and the costs of each worker, after the run.
  public var accounts: [WorkerID: FleetAccount] {
    Dictionary(workers.map { ($0.id, $0.account) }) { first, _ in first }
  }

  /// Simulates the whole trace.
  ///
  /// - Parameter progress: is called at intervals with the share that is done, 0–1.
  public mutating func run(progress: (Double) -> Void = { _ in }) -> FleetReport {
    begin()
    var (use, change, ended) = (0, 0, 0)
    let end = trace.length * 1_000_000
    while true {
      let useAt = use < trace.uses.count ? trace.uses[use].at * 1_000_000 : .max
      let changeAt = change < trace.others.count ? trace.others[change].at * 1_000_000 : .max
      let endAt = ended < trace.ends.count ? trace.ends[ended].at * 1_000_000 : .max
      let nextStepAt = steps.first ?? .max
      let deadline = engine.nextDeadline?.nanoseconds ?? .max
      let next = min(useAt, changeAt, endAt, nextStepAt, deadline)
      guard next < end else { break }
      now = max(now, next)
      if next == nextStepAt, let step = steps.popFirst() {
        handle(step)
      } else if next == changeAt {
        usedByOthers = Int64(trace.others[change].share * Double(machine.memory.bytes))
        change += 1
        relieve()
      } else if next == endAt {
        self.end(Int(trace.ends[ended].worker))
        ended += 1
      } else if next == useAt {
        arrive(trace.uses[use])
        use += 1
        if use & 0xffff == 0 { progress(Double(next) / Double(end)) }
      } else {
        deliver(.deadline)
      }
    }
    now = end
    return finished()
  }

  private mutating func begin() {
    for (number, worker) in workers.enumerated() {
      numbers[worker.id] = Int32(number)
      let start = trace.workers[number].start
      if start == .absent {
        deliver(.added(worker.id, worker.profile))
      } else {
        adopt(number, in: start == .hibernated ? .hibernated : .background)
      }
    }
    steps.add(at: 0, worker: -1, life: 0, kind: .sample)
  }

  /// Adds a worker that has processes when the trace begins.
  private mutating func adopt(_ worker: Int, in state: WorkerState) {
    let footprint = workers[worker].footprint
    let isAsleep = state == .hibernated
    workers[worker].life += 1
    workers[worker].body = isAsleep ? .evicted : .running
    workers[worker].uses = machine.warmUp
    if isAsleep {
      workers[worker].evicted = footprint
      workers[worker].image = Int64(Double(footprint) * machine.imageShare)
      imageBytes += workers[worker].image
    }
    deliver(.adopted(workers[worker].id, workers[worker].profile, state))
    let resident = isAsleep ? min(footprint, machine.hibernatedFootprint.bytes) : footprint
    setResident(worker, resident)
    guard workers[worker].body != .absent else { return }
    deliver(.footprint(workers[worker].id, ByteCount(resident)))
  }

  /// Ends a worker that ends by itself, or that the operator stops. No use is lost.
  private mutating func end(_ worker: Int) {
    guard workers[worker].body != .absent else { return }
    workers[worker].busyUntil = now
    die(worker)
    deliver(.exited(workers[worker].id, .exited(0)))
    restartIfWanted(worker)
  }

  mutating func deliver(_ event: Event) {
    report.events += 1
    let directives = engine.handle(event, at: Instant(nanoseconds: now))
    observer?(event, directives, engine, Instant(nanoseconds: now))
    for directive in directives { perform(directive) }
  }

  private mutating func handle(_ step: FleetStep) {
    switch step.kind {
    case .sample: sample()
    case .useEnds: endUse(step.worker, step.life)
    case .trimEnds: endTrim(step.worker, step.life)
    case .retry: restartIfWanted(Int(step.worker))
    case .event(let event):
      let worker = Int(step.worker)
      guard workers[worker].life == step.life, workers[worker].body != .absent else { return }
      apply(event, to: worker)
      deliver(event)
      follow(event, worker)
    }
  }

  private mutating func follow(_ event: Event, _ worker: Int) {
    switch event {
    case .resumed, .ready: if workers[worker].body == .running { serve(worker) }
    case .exited: restartIfWanted(worker)
    default: break
    }
  }

  /// Reads the memory once a second, as the daemon does, unless nothing has changed.
  private mutating func sample() {
    steps.add(at: now + 1_000_000_000, worker: -1, life: 0, kind: .sample)
    if now / 86_400_000_000_000 > day {
      day = now / 86_400_000_000_000
      writtenToday = 0
    }
    if samples % 60 == 0 { deliver(.disk(disk)) }
    samples += 1
    let stalls = isStalling ? 25.0 : 0
    let reading = MemoryReading(
      total: machine.memory, available: ByteCount(max(0, available)), someStall: stalls,
      fullStall: stalls / 2)
    guard reading != lastReading || engine.pressure != .normal else { return }
    lastReading = reading
    deliver(.memory(reading))
  }

  /// A disk that never fills up, so that only the policy limits images.
  private var disk: DiskReading {
    DiskReading(
      total: .zero, free: .gigabytes(1 << 20), images: ByteCount(imageBytes),
      writtenToday: ByteCount(writtenToday))
  }

  private mutating func finished() -> FleetReport {
    count()
    for worker in workers.indices { workers[worker].addElapsedTime(at: now) }
    let sorted = waits.all.sorted()
    report.wake = waits.latencies(zeros: 0, sorted: sorted)
    report.all = waits.latencies(zeros: report.found[.hot] ?? 0, sorted: sorted)
    report.tail = WaitingTimes.tail(sorted)
    for (state, time) in waited {
      report.meanWait[state] = Double(time) / 1e6 / Double(max(1, report.found[state] ?? 0))
    }
    report.all.mean += report.trimWaitSeconds * 1000 / Double(max(1, report.uses))
    report.trimmedGigabyteHours =
      workers.reduce(0) { $0 + $1.account.trimmedByteSeconds } / 3600 / 1_073_741_824
    report.memoryGigabyteHours = memoryTime / 3.6e12 / 1_073_741_824
    report.peakGigabytes = Double(peak) / 1_073_741_824
    return report
  }
}

// MARK: memory

extension FleetSimulation {
  var available: Int64 { machine.memory.bytes - usedByOthers - resident }
  var isStalling: Bool { Double(available) < machine.reserve * Double(machine.memory.bytes) }

  private mutating func count() {
    memoryTime += Double(resident) * Double(now - countedUntil)
    countedUntil = now
  }

  mutating func setResident(_ worker: Int, _ bytes: Int64) {
    guard bytes != workers[worker].resident else { return }
    count()
    workers[worker].addElapsedTime(at: now)
    resident += bytes - workers[worker].resident
    workers[worker].resident = bytes
    peak = max(peak, resident)
    if available < 0 { relieve() }
  }

  /// Simulates the kernel's OOM killer: it kills the largest worker until there is memory.
  mutating func relieve() {
    while available < 0 {
      let biggest = workers.indices.max { workers[$0].resident < workers[$1].resident }
      guard let biggest, workers[biggest].resident > 0 else { return }
      report.outOfMemory += 1
      die(biggest)
      deliver(.exited(workers[biggest].id, .signaled(9)))
      let delay = workers[biggest].retryDelay
      workers[biggest].kernelKills += 1
      steps.add(at: now + delay, worker: Int32(biggest), life: 0, kind: .retry)
    }
  }

  mutating func die(_ worker: Int) {
    if workers[worker].busyUntil > now { report.lostUses += 1 }
    workers[worker].addElapsedTime(at: now)
    workers[worker].body = .absent
    workers[worker].busyUntil = 0
    workers[worker].longUses = 0
    workers[worker].trimmed = 0
    imageBytes -= workers[worker].image
    workers[worker].image = 0
    workers[worker].uses = 0
    setResident(worker, 0)
  }
}
