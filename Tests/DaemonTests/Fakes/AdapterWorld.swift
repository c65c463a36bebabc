import Glibc
import Hibernation
import Linux
import Policy
import TestSupport
import Testing

@testable import Daemon
@testable import Lifecycle
@testable import PolicyFile
@testable import Supervision

/// The daemon's components, connected as `Daemon` connects them. They use the real services, in a
/// directory of their own, and fakes in place of the daemon. The test's own process represents the
/// process of each worker. Directives are recorded and not carried out.
final class AdapterWorld {
  let scratch: Scratch
  let timers: FakeLoop
  let notes = EventNotes()
  /// The records that answers to clients wait for.
  let saved = FakeRecords()
  let driver: EngineDriver
  let services: Services
  let state: StateDirectory
  let logFile: TestLog
  var log: DaemonLog { logFile.log }
  let workers = WorkerRegistry()
  /// Gets no events, unless a test connects it.
  let chronicle: Chronicle
  let configuration = ConfigurationInForce(
    DaemonConfiguration(policy: LifecyclePolicy(name: "test")))
  let phase = DaemonPhase()
  let returning = ReturningWorkers()
  let requests: WorkerRequests
  let recordWriter: WorkerRecordWriter
  static let bootID = "boot"
  /// The path of the control socket. The workers' channels are beside it.
  var socket: String { scratch.path + "/run/control.sock" }

  // What the daemon provides to the components.
  let restarts: RestartSupervisor
  let starter: DependencyStarter
  let files = FakeStateFiles()
  let wrapped = WrapperWorld()
  let watches = FakeLoop()
  /// The loop of the components that end workers.
  var loop: FakeLoop { timers }
  let workerProcesses = FakeWorkerProcesses()
  /// The external workers whose root process has ended.
  private(set) var externalEnds: [WorkerID] = []
  private(set) var keptLines: [WorkerID: [String]] = [:]
  var whenExternalRootEnds: (WorkerUnit) -> Void = { _ in }
  /// nil: the kernel's memory is used.
  let fakeMemory: FakeMemory?
  /// The workers to which SIGKILL was sent; recorded only if the memory is a fake.
  private(set) var killed: [WorkerID] = []
  /// The processes of earlier daemons' workers; used only if the memory is a fake.
  let strangers = FakeProcesses()

  /// The program of a wrapper. It is set before `ends` is used.
  var program: (any CallersProgram)?

  private static let journalQueue = WorkQueue(name: "test-jrnl")

  /// - Parameter memory: nil: the processes of workers are really stopped, and their memory is
  ///   moved.
  init(
    _ timers: FakeLoop = FakeLoop(), memory: FakeMemory? = nil,
    journal: JournalConfiguration = JournalConfiguration(),
    policy: LifecyclePolicy = LifecyclePolicy(name: "test"), files: JobPool = .forTest
  ) throws {
    self.timers = timers
    fakeMemory = memory
    scratch = try Scratch()
    logFile = TestLog(in: scratch)
    let log = logFile.log
    state = try StateDirectory(path: scratch.path + "/state")
    services = try Services(
      log: log, records: WorkerRecordKeeper(directory: state.workers),
      hibernation: HibernationService(lanes: 1, separatesWorkers: true), files: files)
    chronicle = try Chronicle(
      journal, version: "1", directory: state.journal, reports: state.reports,
      queue: Self.journalQueue, log: { _, _ in })
    heldToTheEnd = services
    driver = .forTest(timers, notes, saved, policy: policy)
    requests = WorkerRequests(driver: driver, returning: returning)
    recordWriter = WorkerRecordWriter(records: services.records, bootID: Self.bootID, log: log)
    restarts = RestartSupervisor(
      timers: timers, wallClock: { 1_795_341_600_000_000_000 }, stoppedFile: "/state/stopped",
      files: self.files, phase: phase, driver: driver, workers: workers, log: log)
    starter = DependencyStarter(restarts: restarts, requests: requests)
    restarts.connect(starter)
    workers.maxEndedRuns = 2
    learnedMemory.connect(driver, workers) { [restarts] in restarts.histories[$0]?.exits }
  }

  deinit { workers.removeAll() }

  // MARK: components

  private(set) lazy var supervision = WorkerSupervision(
    workers: workers, restarts: restarts, starter: starter, reloads: reloads,
    liveness: senses.liveness, listening: listening)
  private(set) lazy var listening = ListeningSockets(
    watches: watches, timers: timers, jobs: services.jobs, files: services.socketFiles,
    declared: declared)
  private(set) lazy var snapshots = SnapshotKeeper(
    directory: state.snapshots, disk: services.disk, loop: services.loopReturn, log: log)
  private(set) lazy var jetsam = JetsamKeeper(
    directory: state.jetsam, disk: services.disk, loop: services.loopReturn, log: log)
  private(set) lazy var learnedMemory = LearnedMemoryKeeper(path: nil, services)
  private(set) lazy var pressure = PressureMonitor(
    services.loop, .kernel(workers: nil), send: { [driver] in driver.send($0) },
    log: { [log] in log($0, $1) })
  private(set) lazy var wrappers = RegisteredWrappers(
    driver: driver, workers: workers, clock: timers, host: wrapped)
  private(set) lazy var schedules = ScheduleMonitor(
    services: services, state: state, driver: driver, workers: workers, returning: returning)
  private(set) lazy var senses = Senses(
    services: services, driver: driver, workers: workers, role: .daemon(), state: state,
    jetsam: jetsam, learnedMemory: learnedMemory, restarts: restarts, pressure: pressure,
    logs: LogKeeper(services) { "/nowhere/\($0.name).times" })
  private(set) lazy var planner = LaunchPlanner(
    leftovers: Leftovers(
      records: services.records.store, logs: state.logs, processes: services.processes),
    logs: state.logs, socket: socket, restarts: restarts, services: services)
  private(set) lazy var reloads = WorkerReloads(
    requests: requests, wrappers: wrappers, restarts: restarts, hibernation: services.hibernation)
  private(set) lazy var conversations = WorkerConversations(
    services: services, timers: timers, watches: watches, driver: driver, workers: workers,
    reloads: reloads, snapshots: snapshots, recordWriter: recordWriter)
  private(set) lazy var sheds = WorkerSheds(
    loop: services.loop, processes: services.processes, driver: driver, workers: workers,
    meter: senses.meter, scanner: senses.scanner, liveness: senses.liveness, log: log)
  /// No process is ended: the test's own process represents the process of each worker.
  private(set) lazy var ends = WorkerEnds(
    loop: loop, processes: workerProcesses, memory: fakeMemory ?? makeMemory(),
    records: services.records, log: log, driver: driver, workers: workers, requests: requests,
    kernelKills: senses.kernelKills, imageDisk: senses.imageDisk, snapshots: snapshots,
    launchPlanner: planner, restarts: restarts, listening: listening, supervision: supervision,
    program: program, keepLastLines: { [unowned self] in keptLines[$0] = $1 },
    externalRootDidEnd: { [unowned self] in
      externalEnds.append($0.id)
      whenExternalRootEnds($0)
    })
  private(set) lazy var sleeps = makeSleeps(over: fakeMemory ?? makeMemory())

  func makeMemory(
    recordTimeout: Duration = WorkerRecordKeeper.imageTimeout,
    resumeOverride: ResumePreference? = nil
  ) -> KernelMemory {
    KernelMemory(
      services: services, state: state, bootID: Self.bootID,
      standby: .pager(
        jobs: services.jobs, loop: services.loop, hibernation: services.hibernation, log: log,
        hasSuccessors: false, lock: state.lockPath),
      resumeOverride: resumeOverride, recordTimeout: recordTimeout)
  }

  func makeSleeps(over memory: any WorkerMemory) -> WorkerSleeps {
    WorkerSleeps(
      driver: driver, workers: workers, timers: services.loop, watches: services.loop,
      memory: memory, imageDisk: senses.imageDisk, log: log,
      kill: { [unowned self] in fakeMemory == nil ? ends.kill($0) : killed.append($0) })
  }
  private(set) lazy var processes = ProcessHolder(
    loop: services.loop, jobs: services.jobs, processes: services.processes,
    probes: senses.probes, sleeps: sleeps, ends: ends)
  private(set) lazy var declared = DeclaredWorkers(
    driver: driver, workers: workers, returning: returning, phase: phase,
    environment: ["HOME": "/root", "PORT": "1"], restarts: restarts, starter: starter,
    learnedMemory: learnedMemory, wrappers: wrappers, log: log)
  private(set) lazy var externals = ExternalAdoption(
    ends: ends, holder: processes, declared: declared, configuration: configuration,
    recordWriter: recordWriter)
  private(set) lazy var rules = RuleAdoption(
    externals: externals,
    released: ReleasedProcesses(
      path: state.path + "/released", bootID: Self.bootID, files: files),
    processes: strangers)
  private(set) lazy var control = ControlServer(path: socket, services.loop, log)
  private(set) lazy var ending = DaemonEnd(externals: externals, control: control)

  /// This is declared last, and therefore freed last: when components are freed, they still use the
  /// loop to remove their watches.
  private let heldToTheEnd: Services

  // MARK: actions of a test

  /// Adds a worker in this state. It has a process, unless it is terminated.
  @discardableResult
  func add(
    _ name: String = "web", _ state: WorkerState = .background, isDeclared: Bool = true,
    _ change: (inout WorkerConfiguration) -> Void = { _ in }
  ) throws -> WorkerUnit {
    let worker = WorkerUnit.forTest(name, isDeclared: isDeclared, change)
    if state != .terminated { worker.process = try .forTest(name) }
    workers[worker.id] = worker
    restarts.add(worker.id, exits: [])
    driver.send(.adopted(worker.id, worker.profile, state))
    notes.forget()
    return worker
  }

  /// Registers a wrapper with a worker of this name.
  func wrap(
    _ name: String, from client: ClientID = ClientID(number: 1), mayBeTerminated: Bool? = nil
  ) {
    wrapped.processes[client] = 77
    let report = WrapperWorld.report(name, mayBeTerminated: mayBeTerminated)
    if let refusal = wrappers.register(report, from: client) { Issue.record("\(refusal)") }
    notes.forget()
  }

  /// Gives the worker its socket, and connects it.
  func connect(_ worker: WorkerUnit) throws -> WorkerSocketPeer {
    var channels = WorkerChannels()
    channels.talk = try WorkerSocket(path: scratch.uniquePath("worker"))
    conversations.makeConversation(worker, over: channels)
    guard let conversation = worker.conversation, let path = conversation.workerSocketPath else {
      throw TestFailure("no worker socket")
    }
    try conversation.listenToConnections()
    let peer = try WorkerSocketPeer(path)
    try watches.serve()
    return peer
  }

  func handle(_ worker: WorkerUnit) -> WorkerHandle {
    WorkerHandle(worker: worker, driver: driver, log: log)
  }

  /// Makes a record of this name with the test's own process, as an earlier daemon would have left
  /// it.
  func record(
    _ name: String = "web", _ state: WorkerState = .background,
    _ change: (inout Supervision.WorkerRecord) -> Void = { _ in }
  ) throws -> Supervision.WorkerRecord {
    var record = Supervision.WorkerRecord(
      name: name, process: try ProcessStat.read(getpid()).identity, session: getpid(),
      bootID: Self.bootID, command: [name], directory: "/", logPath: "/dev/null",
      state: state.rawValue)
    change(&record)
    return record
  }

  /// Reports to the supervisor that a run of the worker has ended.
  func reportEnd(_ worker: WorkerUnit, _ cause: Cause) {
    for (old, new) in [(WorkerState.terminated, WorkerState.launching), (.launching, .terminated)] {
      restarts.record(
        Transition(worker: worker.id, from: old, to: new, cause: cause, at: timers.now))
    }
  }

  /// The requests that the engine has got since the last `add`.
  var asked: [String] {
    notes.all.compactMap {
      if case .request(let request) = $0 { "\(request.verb) \(request.worker)" } else { nil }
    }
  }

  /// Turns the real loop, and serves the fake watches, until the condition holds.
  func turn(until isDone: () throws -> Bool) throws {
    let deadline = EventLoop.now + .seconds(60)
    while try !isDone() {
      if EventLoop.now >= deadline { throw TestFailure("it didn't happen within 60 s") }
      try services.loop.turn(until: EventLoop.now + .milliseconds(5))
      try watches.serveOnce()
    }
  }

  /// Turns the loop until the jobs about a worker that were begun on other threads have reported
  /// their outcomes.
  func finishJobs(_ name: String = "web") throws {
    var isBack = false
    let back = services.loopReturn.callback { (_: Bool) in isBack = true }
    services.mechanics.submit(about: name) { back(true) }
    try turn { isBack }
  }

  /// The lines that were logged so far.
  var logged: String { logFile.text }
}
