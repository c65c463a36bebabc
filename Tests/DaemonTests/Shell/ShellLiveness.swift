import Glibc
import Hibernation
import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision
import TestSupport
import Testing

@testable import Daemon

/// What stands for the processes of simulated workers: descriptors of the test's own process, made once for many
/// lives. Two runs that follow each other have different ones.
final class ShellProcesses {
  /// Without a cgroup, and with one, in which they sleep frozen.
  private let stopped: [WorkerProcess]
  private let frozen: [WorkerProcess]
  private let scratch: Scratch
  private let inputs: [FakeInputs]
  /// The kernel gives no such numbers.
  private(set) var count: Int32 = 5_000_000
  /// A process that no daemon has.
  static let stranger: Int32 = 4_999_999
  private var inputCount = 0
  /// Looks at nothing.
  let traffic: TrafficMonitor
  /// Of the test's process, which stands for each.
  private let own: ProcessStat
  /// What stands for a process of another supervisor.
  let external: ExternalProcess
  let log = DaemonLog(ofWrapper: "/dev/null")
  /// No client connects to it.
  let control: ControlSocket
  /// Hardly used: no simulated worker has pages, sockets or snapshots.
  let services: Services
  let snapshots: SnapshotKeeper
  private let threads = JobPool(name: "shell", most: 1)
  var hibernation: HibernationService { services.hibernation }
  var jobs: LoopJobs { services.jobs }
  let fake = FakeProcesses()
  let state: StateDirectory
  let jetsam: JetsamKeeper
  private let journal = WorkQueue(name: "shell-jrnl")

  init() throws {
    scratch = try Scratch()
    services = try Services(
      log: log, records: WorkerRecordKeeper(directory: scratch.path + "/workers"),
      hibernation: HibernationService(lanes: 1, separatesWorkers: true), files: threads)
    try scratch.write("cgroup.events", "")
    let cgroup = try WorkerCgroup(path: scratch.path)
    stopped = try (0..<64).map { _ in try .forTest("shell") }
    frozen = try (0..<64).map { _ in try .forTest("shell", in: cgroup) }
    state = try StateDirectory(path: scratch.path + "/state")
    snapshots = SnapshotKeeper(
      directory: state.snapshots, disk: services.disk, loop: services.loopReturn, log: log)
    // It is listed, and can't be read.
    try scratch.write("state/jetsam/1.json", "{}")
    jetsam = JetsamKeeper(
      directory: state.jetsam, disk: services.disk, loop: services.loopReturn, log: log)
    control = ControlSocket(path: "/nonexistent/control.sock", services.loop, log)
    inputs = try (0..<128).map { _ in try FakeInputs() }
    traffic = try TrafficMonitor(latches: nil, ownChannels: [])
    own = try ProcessStat.read(getpid())
    let stranger = Self.stat(Self.stranger, like: own)
    external = ExternalProcess(root: stranger, tree: ProcessTree(processes: [stranger]))
  }

  func makeListening(_ world: ShellWorld) -> ListeningSockets {
    ListeningSockets(
      watches: world.clock, timers: world.clock, jobs: jobs, files: SocketFiles(jobs, threads),
      driver: world.driver, workers: world.workers, phase: world.phase, declared: world.declared,
      log: log)
  }

  /// Of one daemon. Nothing can be written.
  func makeChronicle() throws -> Chronicle {
    try Chronicle(
      JournalConfiguration(enabled: false), version: "1", directory: "/nonexistent",
      reports: "/nonexistent", queue: journal, log: { _, _ in })
  }

  func makeHistory(_ world: ShellWorld) -> HistoryVerbs {
    HistoryVerbs(
      clock: world.clock, driver: world.driver, chronicle: world.chronicle, jetsam: jetsam,
      loopReturn: services.loopReturn)
  }

  /// What was given to the disk's threads is done, and has come back to the loop.
  func finishDiskWork() {
    services.disk.drain()
    journal.drain(within: .seconds(10))
    do { try services.loop.turn(until: EventLoop.now) } catch { Issue.record(error) }
  }

  /// Of a simulated process.
  func stat(_ pid: Int32) -> ProcessStat { Self.stat(pid, like: own) }

  private static func stat(_ pid: Int32, like own: ProcessStat) -> ProcessStat {
    var stat = own
    stat.pid = pid
    return stat
  }

  func next(isFrozenAsleep: Bool) -> WorkerProcess {
    count += 1
    let all = isFrozenAsleep ? frozen : stopped
    return all[Int(count) % all.count]
  }

  /// Each process as resting, after this number of ticks of processor time.
  func scan(afterTicks ticks: UInt64) -> ProcessScan {
    var stat = own
    (stat.state, stat.cpuTicks) = (.sleeping, ticks)
    return ProcessScan(processes: [stat])
  }

  /// Nothing has come at them.
  func nextInputs() -> FakeInputs {
    inputCount += 1
    let next = inputs[inputCount % inputs.count]
    _ = next.nextReason()
    next.waiting = nil
    return next
  }
}

/// The real `LivenessSupervisor` and its monitors, over simulated questions and looks. It complains of questions that
/// must not be asked, and of workers that are not asked.
final class ShellLiveness: ProbeQuestions, ActivityLooking, FootprintSource {
  /// A question that is out.
  private final class Question {}

  /// What is known of one run.
  private struct Asked {
    var question: Question?
    /// When the worker has let go of the last question's connection.
    var released = Instant.zero
    var last = Instant.zero
  }

  private unowned let world: ShellWorld
  private var asked: [ObjectIdentifier: Asked] = [:]
  /// When a worker began to be awake.
  private var awakeSince: [WorkerID: Instant] = [:]
  /// When its probe was last reported to fail while it was awake.
  private var reported: [WorkerID: Instant] = [:]
  private lazy var activity = ActivitySampler(
    clock: world.clock, driver: world.driver, workers: world.workers, looks: self,
    meter: FootprintMeter(
      clock: world.clock, driver: world.driver, workers: world.workers, source: self,
      log: { _, _ in }))
  private(set) lazy var supervisor = LivenessSupervisor(
    timers: world.clock, driver: world.driver, probes: self, activity: activity
  ) { [unowned world] in world.supervision.restarts.launchedAt(of: $0) }

  init(_ world: ShellWorld) { self.world = world }

  /// The worker is being stopped.
  func willStop(_ run: ShellRun) {
    guard let asked = asked[ObjectIdentifier(run)] else { return }
    if asked.question != nil { world.complain("\(run.id) is stopped while it is asked") }
    if asked.released > world.clock.now {
      world.complain("\(run.id) is stopped with a question's connection in its queue")
    }
  }

  func note(_ transition: Transition) {
    let isAwake = { (state: WorkerState) in state == .foreground || state == .background }
    if !isAwake(transition.to) {
      awakeSince[transition.worker] = nil
    } else if !isAwake(transition.from) {
      awakeSince[transition.worker] = world.clock.now
    }
  }

  func note(unhealthy id: WorkerID) { reported[id] = world.clock.now }

  /// The run is over.
  func forget(_ run: ShellRun) {
    if asked.removeValue(forKey: ObjectIdentifier(run))?.question != nil {
      world.complain("\(run.id): a question outlives its run")
    }
  }

  /// What has not been done about a worker that is awake; nil: nothing.
  func omission(of id: WorkerID) -> String? {
    // An adopted worker whose name a reload has declared: its own supervisor asks it.
    guard let probe = world.workers[id]?.configuration.liveness, let since = awakeSince[id],
      let run = world.run(of: id), run.body == .running, !run.isExternal
    else { return nil }
    let now = world.clock.now
    let cycle = probe.initialDelay + probe.period + probe.timeout + LivenessMonitor.patience * 3
    let last = asked[ObjectIdentifier(run)]?.last ?? .zero
    if now - max(since, last) > cycle { return "isn't asked whether it is well" }
    let limit = cycle * (probe.failureThreshold + 1)
    if run.isSick, now - since > limit, reported[id].map({ $0 < since }) ?? true {
      return "isn't reported though its probe fails"
    }
    return nil
  }

  // MARK: questions

  func put(
    _ probe: Policy.Probe, to process: WorkerProcess,
    then answer: @escaping (ProbeRunner.Outcome) -> Void
  ) -> () -> Void {
    guard let run = world.runs.run(of: process) else {
      world.complain("a run that has ended is asked")
      return {}
    }
    world.count("asked")
    if run.body != .running, run.body != .dead { world.complain("\(run.id) is asked asleep") }
    let (key, question) = (ObjectIdentifier(run), Question())
    if asked[key]?.question != nil { world.complain("\(run.id) is asked twice at once") }
    asked[key, default: Asked()].question = question
    asked[key]?.last = world.clock.now
    // It ends by itself at its time-out.
    world.after(probe.timeout) { [self, run] in
      guard asked[key]?.question === question else { return }
      asked[key]?.question = nil
      asked[key]?.released = world.clock.now + .milliseconds(world.pick([0, 20, 90]))
      let isWell = withExtendedLifetime(run) { !run.isSick && !world.chance(10) }
      let outcome: ProbeRunner.Outcome = isWell ? .success : .failure("refused")
      world.report(late: .seconds(100), twice: .seconds(60)) { answer(outcome) }
    }
    return { [self] in
      guard asked[key]?.question === question else { return }
      asked[key]?.question = nil
      world.count("question dropped")
    }
  }

  // MARK: looks

  func look(
    at worker: WorkerUnit, _ process: WorkerProcess,
    then: @escaping (ActivityFindings?) -> Void
  ) {
    world.after(.milliseconds(50), rarely: .seconds(20)) { [self] in
      let found = ActivityFindings(
        root: process.identity, cpu: 0, anonymous: 0, hasTraffic: world.chance(20))
      world.report(late: .seconds(100), twice: .seconds(60)) { then(found) }
    }
  }

  func collectLatches() {}

  func measure(
    _ process: WorkerProcess, of id: WorkerID, _ missing: MissingBytes?,
    then: @escaping (Measurement?) -> Void
  ) { then(nil) }
}
