import Glibc
import Lifecycle
import Policy
import Supervision

@testable import Daemon
@testable import Simulation

/// The shell around the engine, driven through virtual time: the real `EngineDriver`, `RequestReplies`,
/// `ControlService`, `RestartSupervisor`, `DependencyStarter`, `LivenessSupervisor`, `ScheduleMonitor`,
/// `WorkerLauncher`, `WorkerSleep`s and `WorkerEnding`s over simulated processes, disks, probes and clients. One
/// seed, one life.
final class ShellWorld: DirectiveExecutor, EngineObserver, RunClosingHost {
  enum Fate { case reported, late, lost, twice }

  let clock = ShellClock()
  let seed: UInt64
  private(set) var driver: EngineDriver
  private(set) var complaints: [String] = []
  private var random: SplitMix64
  private let saved: ShellDisk
  private var runs: [WorkerID: ShellRun] = [:]
  let workers = WorkerRegistry()
  let processes: ShellProcesses
  private(set) lazy var supervision = ShellSupervision(self)
  private(set) lazy var liveness = ShellLiveness(self)
  private lazy var schedules = ShellSchedules(self)
  private lazy var clients = ShellClients(self)
  private lazy var launching = ShellLaunching(self)
  private lazy var closing = RunClosing(FakeWatches(), self)
  private var hasFaults = true
  let names: [WorkerID]
  private var events: [Event] = []
  /// How often what has happened.
  private(set) var counts: [String: Int] = [:]

  init(seed: UInt64, _ processes: ShellProcesses) {
    self.seed = seed
    self.processes = processes
    random = SplitMix64(seed: seed)
    saved = ShellDisk(clock)
    names = (0..<(1 + Int(random.next() % 3))).map { WorkerID("w\($0)") }
    let policy = LifecyclePolicy.random(using: &random)
    driver = EngineDriver(
      Engine(policy: policy), clock: clock, replies: RequestReplies(saved, timers: clock))
    driver.connect(self, [self])
    for (number, name) in names.enumerated() {
      let probe = random.chance(50) ? Self.probe(using: &random) : nil
      workers[name] = .forTest(name.name) {
        $0.policy = policy
        $0.liveness = probe
      }
      supervision.add(name, before: Array(names.prefix(number)), using: &random)
      driver.send(.added(name, WorkerProfile.random(from: policy, using: &random)))
    }
  }

  private static func probe(using random: inout SplitMix64) -> Probe {
    Probe(
      .exec(["ask"]), initialDelay: random.pick([.zero, .seconds(3)]),
      period: random.pick([.seconds(2), .seconds(10), .seconds(60)]),
      timeout: random.pick([.milliseconds(500), .seconds(3)]),
      failureThreshold: random.pick([1, 3]))
  }

  func hasRun(_ id: WorkerID) -> Bool { runs[id] != nil }
  func run(of id: WorkerID) -> ShellRun? { runs[id] }
  func run(of process: WorkerProcess) -> ShellRun? {
    runs.values.first { $0.process === process }
  }
  var isClosing: Bool { supervision.isClosing }

  // MARK: chance and time

  func complain(_ text: String) {
    if complaints.count < 5 { complaints.append("\(text), after \(events.suffix(8))") }
  }

  /// A fault in this share of cases, percent; none when the world heals.
  func chance(_ percent: Int) -> Bool { hasFaults && random.chance(percent) }

  func pick<Value>(_ values: [Value]) -> Value { random.pick(values) }

  func count(_ what: String) { counts[what, default: 0] += 1 }

  func fate() -> Fate {
    let fate: Fate = chance(4) ? .lost : chance(3) ? .late : chance(4) ? .twice : .reported
    count("\(fate)")
    return fate
  }

  /// An outcome comes; or it is late, or lost, or comes twice.
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
    _ most: Duration, rarely longest: Duration? = nil, _ action: @escaping () -> Void
  ) {
    let limit = longest.map { chance(2) ? $0 : most } ?? most
    clock.after(random.duration(upTo: limit), do: action)
  }

  /// Everything that is due until then.
  private func run(until end: Instant) {
    var steps = 0
    while true {
      let next = [clock.next, driver.nextDeadline].compactMap(\.self).min()
      guard let next, next <= end else { return clock.advance(to: end) }
      clock.advance(to: next)
      driver.passDeadlines()
      while clock.runOne() {}
      steps += 1
      if steps > 20_000 { return complain("time doesn't pass") }
    }
  }

  // MARK: one life

  /// What went wrong; empty: nothing.
  func live(stimuli: Int) throws -> [String] {
    try schedules.begin(names.filter { _ in random.chance(15) })
    for _ in 0..<stimuli {
      run(until: clock.now + random.duration(upTo: random.chance(20) ? .seconds(60) : .seconds(2)))
      stimulate()
      if !complaints.isEmpty { return complaints }
    }
    // The world heals: no more faults, no pressure. What was lost is found, and everything comes to rest.
    hasFaults = false
    driver.send(.pressureSet(.normal, for: .zero))
    driver.send(.memory(Self.reading(.gigabytes(8))))
    run(until: clock.now + .seconds(1200))
    for name in names {
      if let why = supervision.forgotten(name) { complain("\(name) isn't started again: \(why)") }
      if let what = liveness.omission(of: name) { complain("\(name) \(what)") }
      if let what = schedules.omission(of: name) { complain("\(name) \(what)") }
    }
    endAll()
    return complaints
  }

  private func endAll() {
    supervision.close()
    for name in names where driver.state.state(of: name)?.isAlive == true {
      clients.ask(.stop, name)
    }
    run(until: clock.now + .seconds(3600))
    for name in names {
      let state = driver.state.state(of: name)
      if state != .terminated { complain("\(name) is stuck: \(state?.rawValue ?? "unknown")") }
      if let run = runs[name] { complain("\(name): a run is left (\(run.body.rawValue))") }
    }
    if let remains = launching.remains { complain(remains) }
    for omission in clients.omissions { complain(omission) }
  }

  private static func reading(_ available: ByteCount) -> MemoryReading {
    MemoryReading(total: .gigabytes(8), available: available)
  }

  private func stimulate() {
    let name = random.pick(names)
    let run = runs[name]
    switch random.next() % 100 {
    case ..<40:
      // What is asked may be answered at once, with chances of its own.
      var choices = SplitMix64(seed: random.next())
      clients.askSomething(of: name, using: &choices)
    case ..<52: driver.send(.memory(Self.reading(.megabytes(random.pick([40, 200, 900, 6000])))))
    case ..<60: driver.send(.footprint(name, .megabytes(random.pick([1, 10, 60]))))
    case ..<66: if run?.body == .running { driver.send(.activity(name)) }
    case ..<76:
      if run?.body == .stopped || run?.body == .evicted {
        driver.send(.wakeNeeded(name, "a connection"))
      }
    case ..<80:
      if run?.body == .running { driver.send(.taskBegan(name, task: "save", limit: .seconds(5))) }
    case ..<86: run?.die(.signaled(11))
    case ..<92: saved.stall(for: random.duration(upTo: .seconds(3)))
    case ..<96: driver.setPolicy(.random(using: &random))
    case ..<97: schedules.setClock(by: random.pick([-7000, -100, 100, 7000]))
    default: driver.send(.stalled(random.pick([.warning, .urgent, .critical])))
    }
  }

  // MARK: what the engine wants

  func engineIsQuiet() {}

  func execute(_ directive: Directive) {
    switch directive {
    case .launch(let id): launching.launcher.launch(id)
    case .suspend(let id): runs[id]?.sleep?.suspend()
    case .hibernate(let id): runs[id]?.sleep?.hibernate()
    case .resume(let id): runs[id]?.sleep?.resume()
    case .inspect(let id):
      if let sleep = runs[id]?.sleep { sleep.inspect() } else { driver.send(.exited(id, .unknown)) }
    case .terminate(let id): runs[id]?.ending.terminate()
    case .abort(let id): runs[id]?.ending.terminate(by: SIGABRT)
    case .kill(let id): runs[id]?.kill()
    case .shed(let id, _, _): answer(id, .seconds(3)) { .shedAnswered(id) }
    case .finishShed(let id):
      answer(id, .milliseconds(50)) {
        .shedFinished(id, before: .megabytes(8), after: .megabytes(4))
      }
    case .checkSafePoint(let id): answer(id, .milliseconds(10)) { .fileLocks(id, held: 0) }
    case .checkWatchdog(let id): answer(id, .milliseconds(10)) { .watchdogSeen(id, at: nil) }
    case .purge(let id): answer(id, .milliseconds(20)) { .purged(id, freed: .megabytes(1)) }
    case .measure(let id): answer(id, .milliseconds(20)) { .footprint(id, .megabytes(5)) }
    case .expireTask(let id, let task): answer(id, .seconds(1)) { .taskEnded(id, task: task) }
    case .transition(let transition):
      liveness.note(transition)
      clients.happened(transition)
      supervision.note(transition)
    case .pressureChanged(_, let level, _):
      if level == .normal { supervision.restarts.pressureIsNormal() }
    case .answer, .report, .wouldHave, .watchdogMissed: break
    }
  }

  /// An event of the run that there is now, if it still is then.
  private func answer(_ id: WorkerID, _ most: Duration, _ event: @escaping () -> Event) {
    guard let run = runs[id], !chance(2) else { return }
    after(most) { [unowned self] in if runs[id] === run { driver.send(event()) } }
  }

  /// Its program runs: it is a worker from now on.
  func attach(_ run: ShellRun) {
    if runs[run.id] != nil { complain("\(run.id) runs twice") }
    run.sleep = WorkerSleep(run.id, driver: driver, clock: clock, mechanics: run, host: run)
    runs[run.id] = run
    guard let runtime = workers[run.id] else { return }
    runtime.process = run.process
    runtime.sleep = run.sleep
    runtime.ending = run.ending
    if chance(50) { runtime.traffic = processes.traffic }
  }

  /// The engine has heard that it runs.
  func hasLaunched(_ id: WorkerID) {
    let run = runs[id]
    after(.seconds(1)) { [unowned self] in if runs[id] === run { driver.send(.ready(id)) } }
  }

  func save() { saved.save() }

  func ended(_ run: ShellRun, _ status: ExitStatus) {
    guard runs[run.id] === run else { return complain("\(run.id) has ended twice") }
    runs[run.id] = nil
    if let runtime = workers[run.id] { closing.close(runtime) }
    liveness.forget(run)
    saved.save()
    driver.send(.exited(run.id, status))
  }

  func removeFiles(of runtime: WorkerUnit) {}

  // MARK: what must be true

  /// What the engine hears of a worker's sleep is so, and is of the run that there is.
  func handled(_ event: Event, directives: [Directive], engine: Engine, at now: Instant) {
    events.append(event)
    if events.count > 40 { events.removeFirst(20) }
    switch event {
    case .launched(let id): check(id, .running, event, "launched")
    case .launchFailed(let id, _):
      count("launchFailed")
      if hasRun(id) { complain("\(event) of \(id), which runs") }
    case .suspended(let id): check(id, .stopped, event, "suspended")
    case .hibernated(let id, _): check(id, .evicted, event, "hibernated")
    case .resumed(let id, _): check(id, .running, event, "resumed")
    case .found(let id, .running): check(id, .running, event, "found")
    case .suspendFailed(let id, _): check(id, .running, event, "suspendFailed")
    case .found(let id, .suspended): check(id, .stopped, event, "found")
    case .found(let id, .hibernated): check(id, .evicted, event, "found")
    case .hibernateFailed(let id, _, _): check(id, nil, event, "hibernateFailed")
    case .resumeFailed(let id, _, _): check(id, nil, event, "resumeFailed")
    case .exited: count("exited")
    case .unhealthy(let id, _):
      liveness.note(unhealthy: id)
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
