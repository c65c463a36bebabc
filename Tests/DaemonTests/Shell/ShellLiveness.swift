import Glibc
import Hibernation
import Lifecycle
import Linux
import Policy
import Supervision
import TestSupport
import Testing

@testable import Daemon
@testable import PolicyFile

/// Represents the processes of simulated workers by descriptors of the test's own process. They are
/// opened once for many lives. Two runs that follow each other have different ones.
final class ShellProcesses {
  /// Processes of workers without a cgroup, which are stopped while they sleep.
  private let stopped: [WorkerProcess]
  /// Processes of workers with a cgroup, which are frozen while they sleep.
  private let frozen: [WorkerProcess]
  private let scratch: Scratch
  private let inputs: [FakeInputs]
  /// The kernel never gives such pids.
  private(set) var count: Int32 = 5_000_000
  /// A pid that no daemon manages.
  static let stranger: Int32 = 4_999_999
  private var inputCount = 0
  /// Samples nothing.
  let traffic: TrafficMonitor
  /// The test's own process, which represents each process.
  private let testStat: ProcessStat
  /// Represents a process of another supervisor.
  let external: ExternalProcess
  /// Writes only errors.
  let log: DaemonLog
  /// No client connects to it.
  let control: ControlServer
  /// These are hardly used: no simulated worker has pages, sockets or snapshots.
  let services: Services
  let snapshots: SnapshotKeeper
  var hibernation: HibernationService { services.hibernation }
  var jobs: LoopJobs { services.jobs }
  let fake = FakeProcesses()
  let state: StateDirectory
  let jetsam: JetsamKeeper
  private let journal = WorkQueue(name: "shell-jrnl")

  init() throws {
    scratch = try Scratch()
    log = DaemonLog(ofWrapper: nil, errors: try Descriptor.open("/dev/null", O_WRONLY))
    services = try Services(
      log: log, records: WorkerRecordKeeper(directory: scratch.path + "/workers"),
      hibernation: HibernationService(lanes: 1, separatesWorkers: true),
      files: JobPool(name: "shell", maxOrdinary: 1))
    // An empty group without groups below it. If these files were missing, each sample of its
    // processes would throw errors, and the testing library unwinds the stack for each error.
    for name in ["cgroup.events", "cgroup.procs"] { try scratch.write("group/" + name, "") }
    let cgroup = try WorkerCgroup(path: scratch.path + "/group")
    stopped = try (0..<64).map { _ in try .forTest("shell") }
    frozen = try (0..<64).map { _ in try .forTest("shell", in: cgroup) }
    state = try StateDirectory(path: scratch.path + "/state")
    snapshots = SnapshotKeeper(
      directory: state.snapshots, disk: services.disk, loop: services.loopReturn, log: log)
    // The report is listed, but can't be read.
    try scratch.write("state/jetsam/1.json", "{}")
    jetsam = JetsamKeeper(
      directory: state.jetsam, disk: services.disk, loop: services.loopReturn, log: log)
    control = ControlServer(path: "/nonexistent/control.sock", services.loop, log)
    inputs = try (0..<128).map { _ in try FakeInputs() }
    traffic = try TrafficMonitor(latches: nil, daemonSockets: [])
    testStat = try ProcessStat.read(getpid())
    let stranger = Self.stat(Self.stranger, like: testStat)
    external = ExternalProcess(root: stranger, tree: ProcessTree(processes: [stranger]))
  }

  /// Makes the chronicle of one daemon. It writes nothing.
  func makeChronicle() throws -> Chronicle {
    try Chronicle(
      JournalConfiguration(enabled: false), version: "1", directory: "/nonexistent",
      reports: "/nonexistent", queue: journal, log: { _, _ in })
  }

  /// Completes the work of the disk's threads, and delivers the outcomes on the loop.
  func finishDiskWork() {
    services.disk.drain()
    journal.drain(within: .seconds(10))
    do { try services.loop.turn(until: EventLoop.now) } catch { Issue.record(error) }
  }

  /// The status of a simulated process.
  func stat(_ pid: Int32) -> ProcessStat { Self.stat(pid, like: testStat) }

  private static func stat(_ pid: Int32, like template: ProcessStat) -> ProcessStat {
    var stat = template
    stat.pid = pid
    return stat
  }

  func next(isFrozenAsleep: Bool) -> WorkerProcess {
    count += 1
    let all = isFrozenAsleep ? frozen : stopped
    return all[Int(count) % all.count]
  }

  /// A scan in which the process is idle and has used this number of ticks of processor time.
  func scan(afterTicks ticks: UInt64) -> ProcessScan {
    var stat = testStat
    (stat.state, stat.cpuTicks) = (.sleeping, ticks)
    return ProcessScan(processes: [stat])
  }

  /// Returns the next inputs. No input has arrived at them.
  func nextInputs() -> FakeInputs {
    inputCount += 1
    let next = inputs[inputCount % inputs.count]
    _ = next.nextReason()
    next.waiting = nil
    return next
  }
}

/// The real `LivenessSupervisor` and its monitors, over simulated questions and samples. It reports
/// an error for a question that must not be asked, and for a worker that isn't asked.
final class ShellLiveness: ProbeQuestions, ActivitySource, FootprintSource {
  /// A question that has no answer yet.
  private final class Question {}

  /// The questions to one run.
  private struct Asked {
    var question: Question?
    /// When the worker has closed the connection of the last question.
    var released = Instant.zero
    var last = Instant.zero
  }

  private unowned let world: ShellWorld
  private var asked: [ObjectIdentifier: Asked] = [:]
  /// When each worker was woken or launched.
  private var awakeSince: [WorkerID: Instant] = [:]
  /// When each worker was last reported as unhealthy while it was awake.
  private var reported: [WorkerID: Instant] = [:]
  private lazy var activity = ActivitySampler(
    clock: world.clock, driver: world.driver, workers: world.workers, source: self,
    meter: FootprintMeter(
      clock: world.clock, driver: world.driver, workers: world.workers, source: self,
      log: { _, _ in }))
  private(set) lazy var supervisor = LivenessSupervisor(
    timers: world.clock, driver: world.driver, probes: self, activity: activity
  ) { [unowned world] in world.supervision.restarts.launchedAt(of: $0) }

  init(_ world: ShellWorld) { self.world = world }

  /// Checks that no question is open when the worker is stopped.
  func willStop(_ run: ShellRun) {
    guard let asked = asked[ObjectIdentifier(run)] else { return }
    if asked.question != nil { world.complain("\(run.id) is stopped while it is asked") }
    if asked.released > world.clock.now {
      world.complain("\(run.id) is stopped with a question's connection in its queue")
    }
  }

  func record(_ transition: Transition) {
    let isAwake = { (state: WorkerState) in state == .foreground || state == .background }
    if !isAwake(transition.to) {
      awakeSince[transition.worker] = nil
    } else if !isAwake(transition.from) {
      awakeSince[transition.worker] = world.clock.now
    }
  }

  func record(unhealthy id: WorkerID) { reported[id] = world.clock.now }

  /// Forgets a run that is over.
  func forget(_ run: ShellRun) {
    if asked.removeValue(forKey: ObjectIdentifier(run))?.question != nil {
      world.complain("\(run.id): a question outlives its run")
    }
  }

  /// What should have been done about a worker that is awake; nil: nothing.
  func omission(of id: WorkerID) -> String? {
    // An adopted worker may have a name that a reload has declared: its own supervisor probes it.
    guard let probe = world.workers[id]?.configuration.liveness, let since = awakeSince[id],
      let run = world.run(of: id), run.body == .running, !run.isExternal
    else { return nil }
    let now = world.clock.now
    let cycle = probe.initialDelay + probe.period + probe.timeout + QuietQuestion.timeout * 3
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
    // The question ends by itself at its timeout.
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

  // MARK: samples

  func sample(
    _ worker: WorkerUnit, _ process: WorkerProcess, then: @escaping (ActivityReading?) -> Void
  ) {
    world.after(.milliseconds(50), rarely: .seconds(20)) { [self] in
      let reading = ActivityReading(
        root: process.identity, cpu: 0, anonymous: 0, hasTraffic: world.chance(20))
      world.report(late: .seconds(100), twice: .seconds(60)) { then(reading) }
    }
  }

  func collectLatches() {}

  func measure(
    _ process: WorkerProcess, of id: WorkerID, _ missing: MissingBytes?,
    then: @escaping (Measurement?) -> Void
  ) { then(nil) }
}
