import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision

@testable import Daemon
@testable import Simulation

/// Simulates the shell around the engine in virtual time: the real `EngineDriver`,
/// `RequestReplies`, `ControlService`, `RestartSupervisor`, `DependencyStarter`,
/// `LivenessSupervisor`, `ScheduleMonitor`, `WorkerLauncher`, `ProcessHolder`, `WorkerSheds`,
/// `WorkerSleeps`, `WorkerEnds`, `ConfigurationReloader`, `ExternalAdoption`, `SurvivorAdoption`
/// and `DaemonEnd`, connected as in `Daemon`, over simulated processes, disks, probes and clients.
/// Each seed gives one life. A daemon that dies or leaves has a successor.
final class ShellWorld {
  enum Fate { case reported, late, lost, twice }

  let clock: FakeLoop
  let seed: UInt64
  let driver: EngineDriver
  let chronicle: Chronicle
  let saved: ShellDisk
  let processes: ShellProcesses
  let workers = WorkerRegistry()
  let returning = ReturningWorkers()
  let phase = DaemonPhase()
  let hasFreezer: Bool
  private let configuration: DaemonConfiguration
  private let records: [String: WorkerRecord]
  private let remains: [ShellRun]
  private(set) lazy var survivors = ShellSurvivors(self, remains, records)
  private(set) lazy var recordWriter = WorkerRecordWriter(
    records: saved, bootID: "boot", log: processes.log)
  private(set) lazy var endCheck = ShellDaemonEnd(self)
  private(set) lazy var reloads = ShellReloads(self, configuration)
  private(set) lazy var requests = WorkerRequests(driver: driver, returning: returning)
  private(set) lazy var supervision = ShellSupervision(self)
  private(set) lazy var liveness = ShellLiveness(self)
  private(set) lazy var shedding = ShellSheds(self)
  /// The workers have no channels.
  private(set) lazy var conversations = WorkerConversations(
    services: processes.services, timers: clock, watches: clock, driver: driver, workers: workers,
    reloads: supervision.reloads, snapshots: processes.snapshots, recordWriter: recordWriter)
  private(set) lazy var planner = LaunchPlanner(
    logs: "/nonexistent", socket: "/nonexistent/control.sock", restarts: supervision.restarts,
    services: processes.services)
  private(set) lazy var schedules = ShellSchedules(self)
  private(set) lazy var clients = ShellClients(self)
  private(set) lazy var launching = ShellLaunching(self)
  private(set) lazy var runs = ShellRuns(self)
  private(set) lazy var wrappers = RegisteredWrappers(
    driver: driver, workers: workers, clock: clock, host: NoWrappers())
  private(set) lazy var learnedMemory = LearnedMemoryKeeper(path: nil, clock) { _, _, _, _ in }
  private(set) lazy var declared = DeclaredWorkers(
    driver: driver, workers: workers, returning: returning, phase: phase, environment: [:],
    restarts: supervision.restarts, starter: supervision.starter,
    learnedMemory: learnedMemory, wrappers: wrappers,
    log: processes.log)
  private(set) lazy var externalHost = ShellExternals(self)
  private(set) lazy var externals = ExternalAdoption(
    ends: ends, holder: runs.holder, declared: declared,
    configuration: reloads.configuration, recordWriter: recordWriter)
  private(set) lazy var rules = RuleAdoption(
    externals: externals,
    released: ReleasedProcesses(path: "/nonexistent/released", bootID: "boot", files: externalHost),
    processes: processes.fake)
  private(set) lazy var memory = ShellMemory(self)
  /// The simulated kernel reports no pressure.
  private(set) lazy var pressure = PressureMonitor(
    clock,
    PressureMonitor.Readings(
      memory: { nil }, stall: { _ in nil },
      trigger: { (kind, stall, window, _) throws(PressureTriggerError) in
        try PressureTrigger(kind, stall: stall, window: window, path: "/none").descriptor
      }),
    send: { _ in }, log: { _, _ in })
  private(set) lazy var ends = WorkerEnds.ofShell(self)
  private(set) lazy var imageDisk = ImageDiskMonitor(
    directory: "/", ledger: WriteLedger(path: "/nonexistent/writes"),
    ImageDiskMonitor.Needs(
      read: { [unowned self] in readDisk(then: $0) }, send: { [unowned self] in driver.send($0) },
      save: { _ in }, time: { 0 }, log: { _, _ in }))
  private(set) lazy var sleeps = WorkerSleeps(
    driver: driver, workers: workers, timers: clock, watches: clock, memory: memory,
    imageDisk: imageDisk, log: processes.log, kill: { [unowned self] in run(of: $0)?.kill() })
  private(set) lazy var ending = DaemonEnd(externals: externals, control: processes.control)

  var random: SplitMix64
  /// The workers that have an image on the disk.
  var images: Set<WorkerID> = []
  var hasFaults = true
  private(set) var complaints: [String] = []
  private var events: [Event] = []
  /// How often each event has happened.
  private(set) var counts: [String: Int] = [:]

  convenience init(seed: UInt64, _ processes: ShellProcesses) throws {
    var random = SplitMix64(seed: seed)
    let policy = LifecyclePolicy.ofShell(using: &random)
    var configuration = DaemonConfiguration(
      policy: policy, workers: ShellConfigurations.first(policy, using: &random))
    configuration.adoption = ShellExternals.nextRules([], policy, using: &random)
    try self.init(
      seed: seed, random, processes, FakeLoop(), configuration, records: [:], remains: [],
      hasFreezer: random.chance(50))
  }

  /// Makes the next daemon, after one that has left its workers or has died.
  convenience init(after old: ShellWorld) throws {
    let clock = FakeLoop(old.clock.now + .seconds(1))
    try self.init(
      seed: old.seed, old.random, old.processes, clock, old.reloads.current,
      records: old.saved.records(), remains: old.runs.all, hasFreezer: old.hasFreezer)
    images = old.images
    counts = old.counts
  }

  private init(
    seed: UInt64, _ random: SplitMix64, _ processes: ShellProcesses, _ clock: FakeLoop,
    _ configuration: DaemonConfiguration, records: [String: WorkerRecord], remains: [ShellRun],
    hasFreezer: Bool
  ) throws {
    self.seed = seed
    self.random = random
    self.processes = processes
    self.clock = clock
    saved = ShellDisk(clock, records)
    driver = EngineDriver(
      Engine(policy: configuration.policy), clock: clock,
      replies: RequestReplies(saved, timers: clock))
    chronicle = try processes.makeChronicle()
    self.hasFreezer = hasFreezer
    self.configuration = configuration
    self.records = records
    self.remains = remains
    driver.connect(
      [self, chronicle], carryOut: { [unowned self] in execute($0) },
      whenQuiet: { [unowned self] in ending.engineDidBecomeQuiet() })
    saved.losesReport = { [unowned self] in chance(5) }
    saved.pid = { [unowned self] in run(of: $0)?.number }
  }

  /// Ends the daemon's process. What it was about to do isn't done.
  func abandon() {
    processes.finishDiskWork()
    for worker in workers.values {
      worker.endRun(clock)
    }
    workers.removeAll()
    clock.abandon()
  }

  // MARK: chance and time

  func complain(_ text: String) {
    if complaints.count < 5 { complaints.append("\(text), after \(events.suffix(8))") }
  }

  /// Returns true in this percentage of cases; never after the faults have ended.
  func chance(_ percent: Int) -> Bool { hasFaults && random.chance(percent) }

  func pick<Value>(_ values: [Value]) -> Value { random.pick(values) }

  func count(_ what: String) { counts[what, default: 0] += 1 }

  func fate() -> Fate {
    let fate: Fate = chance(4) ? .lost : chance(3) ? .late : chance(4) ? .twice : .reported
    count("\(fate)")
    return fate
  }

  /// Reports an outcome in time, late, never, or twice.
  func report(late: Duration, twice: Duration, _ then: @escaping () -> Void) {
    switch fate() {
    case .reported: after(.milliseconds(20), then)
    case .late: after(late, then)
    case .lost: break
    case .twice:
      after(.milliseconds(20), then)
      after(twice, then)
    }
  }

  func after(
    _ usual: Duration, rarely longest: Duration? = nil, _ action: @escaping () -> Void
  ) {
    let limit = longest.map { chance(2) ? $0 : usual } ?? usual
    clock.after(random.duration(upTo: limit), do: action)
  }

  /// Runs all events that are due until then, or until the daemon's end.
  func run(until end: Instant) {
    let never = end + .nanoseconds(1)
    for steps in 0... {
      if ending.hasEnded { break }
      let (timer, deadline) = (clock.next ?? never, driver.nextDeadline ?? never)
      guard min(timer, deadline) <= end else { return clock.advance(to: end) }
      clock.advance(to: min(timer, deadline))
      if deadline <= clock.now { driver.passDeadlines() }
      while !ending.hasEnded, clock.runOne() {}
      if steps > 20_000 { return complain("time doesn't pass") }
    }
    clients.announceEnd()
  }

  /// Delivers the outcomes of the disk's threads after a while.
  func awaitDisk() {
    after(.milliseconds(50), rarely: .seconds(10)) { [unowned self] in processes.finishDiskWork() }
  }

  /// A disk with room for every image.
  private func readDisk(then: @escaping (ImageDisk?) -> Void) {
    count("disk read")
    imageDisk.didBeginReading()
    after(.milliseconds(50), rarely: .seconds(10)) {
      then(ImageDisk(total: .megabytes(1 << 20), free: .megabytes(1 << 19)))
    }
  }

  // MARK: runs of workers

  func hasRun(_ id: WorkerID) -> Bool { runs[id] != nil }
  func run(of id: WorkerID) -> ShellRun? { runs[id] }

  // MARK: checks

  /// Checks that an event about a worker's sleep is true, and is about the current run.
  fileprivate func check(_ event: Event) {
    events.append(event)
    runs.check()
    if events.count > 40 { events.removeFirst(20) }
    switch event {
    case .launched(let id): check(id, .running, event, "launched")
    case .launchFailed(let id, _):
      count("launchFailed")
      if hasRun(id) { complain("\(event) of \(id), which runs") }
    case .suspended(let id):
      check(id, .stopped, event, "suspended")
      if run(of: id)?.isWatched == false { complain("\(id) sleeps, and isn't watched") }
    case .hibernated(let id, _): check(id, .evicted, event, "hibernated")
    case .resumed(let id, _):
      check(id, .running, event, "resumed")
      if run(of: id)?.isWatched == true { complain("\(id) runs, and its inputs are watched") }
    case .found(let id, .running): check(id, .running, event, "found")
    case .suspendFailed(let id, _), .staysAwake(let id, _): check(id, .running, event, "refused")
    case .found(let id, .suspended): check(id, .stopped, event, "found")
    case .found(let id, .hibernated): check(id, .evicted, event, "found")
    case .hibernateFailed(let id, _, _): check(id, nil, event, "hibernateFailed")
    case .resumeFailed(let id, _, _): check(id, nil, event, "resumeFailed")
    case .adopted(let id, _, .suspended): check(id, nil, event, "adopted suspended")
    case .adopted(let id, _, .hibernated): check(id, .evicted, event, "adopted hibernated")
    case .adopted(let id, _, _): check(id, .running, event, "adopted")
    case .timerDue(let id, _):
      count("timer")
      if run(of: id)?.hasEnded == true { complain("\(event) after its end") }
    case .profileChanged(let id, _):
      if workers[id]?.external?.rule != nil { count("changed by rule") }
    case .exited(let id, let status):
      count("exited")
      runs.didEnd(id, status)
    case .request(let request): supervision.record(request)
    case .unhealthy(let id, _):
      liveness.record(unhealthy: id)
      check(id, nil, event, "unhealthy")
    default: break
    }
  }

  private func check(_ id: WorkerID, _ body: ShellRun.Body?, _ event: Event, _ name: String) {
    count(name)
    guard let run = runs[id] else { return complain("\(event) of \(id), which has ended") }
    guard let body, run.body != body, run.body != .dead else { return }
    complain("\(event) isn't true: \(run.body.rawValue)")
  }
}

extension ShellWorld: EngineObserver {
  func handled(_ event: Event, directives: [Directive], engine: Engine, at now: Instant) {
    check(event)
    endCheck.record(event, directives)
  }
}
