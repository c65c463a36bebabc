import CLinux
import Control
import Glibc
import Hibernation
import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision

/// The shell around the engine: turns the world's signals into events, and performs directives. This makes its
/// components, each with those that it needs, and connects them; no component knows it. Where two need each other,
/// one gets a closure here.
///
/// Everything here happens on the main thread, where nothing may wait; what may take long is handed to
/// other threads (docs/ARCHITECTURE.md), and its outcome comes back as a message.
public final class Daemon {
  // MARK: what existed before it

  private let role: DaemonRole
  private let configuration: ConfigurationInForce
  private let socket: String
  /// What workers inherit.
  private let environment: [String: String]
  private let version: String
  /// Reads the configuration again.
  private let read: @Sendable () -> ParseResult<DaemonConfiguration>
  private let state: StateDirectory
  private let cgroups: CgroupRoot?
  /// Where an earlier version kept the workers of this state directory, if that is there.
  private let earlierCgroups: CgroupRoot?
  /// Why workers' memory can't be limited, in addition to the kernel's reason.
  private let limitsObstacle: DelegatedGroup.Obstacle?
  private let bootID: String

  // MARK: what all parts use

  private let services: Services
  private let driver: EngineDriver
  private let workers = WorkerRegistry()
  private let phase = DaemonPhase()
  private let returning = ReturningWorkers()
  private let requests: WorkerRequests
  private let recordWriter: WorkerRecordWriter
  private let jetsam: JetsamKeeper
  private let snapshots: SnapshotKeeper
  private let chronicle: Chronicle
  private let learnedMemory: LearnedMemoryKeeper
  private let pressure: PressureMonitor
  private let stoppedByPerson: StoppedByPerson
  private let control: ControlSocket

  // MARK: supervision

  private let restarts: RestartSupervisor
  /// Starts workers when their dependencies have reached the required states.
  private let starter: DependencyStarter
  private lazy var declared = DeclaredWorkers(
    driver: driver, workers: workers, returning: returning, phase: phase,
    environment: environment, restarts: restarts, starter: starter, learnedMemory: learnedMemory,
    wrappers: wrappers, stoppedByPerson: stoppedByPerson, log: services.log)
  private lazy var supervision = WorkerSupervision(
    workers: workers, restarts: restarts, starter: starter, reloads: reloads,
    liveness: senses.liveness, listening: listening)
  private lazy var schedules = ScheduleMonitor(
    services: services, state: state, driver: driver, workers: workers, returning: returning)

  // MARK: senses

  private lazy var senses = Senses(
    .init(
      services: services, driver: driver, workers: workers, role: role, state: state,
      jetsam: jetsam, learnedMemory: learnedMemory, restarts: restarts, recordWriter: recordWriter,
      pressure: pressure, logs: LogKeeper(services) { [state] in state.logTimes(of: $0.name) }))

  // MARK: workers

  private lazy var listening = ListeningSockets(
    watches: services.loop, timers: services.loop, jobs: services.jobs, files: services.socketFiles,
    driver: driver, workers: workers, phase: phase, declared: declared, log: services.log)
  private lazy var launchPlanner = LaunchPlanner(
    ground: LaunchGround(
      cgroups: cgroups, earlierCgroups: earlierCgroups, limitsObstacle: limitsObstacle,
      records: services.records.store, logs: state.logs, socket: socket,
      processes: services.processes, inheritance: role.program?.inheritance),
    restarts: restarts, services: services)
  private lazy var launcher: WorkerLauncher = WorkerLauncher(
    driver: driver, workers: workers, timers: services.loop,
    host: WorkerLaunches(
      services: services, driver: driver, workers: workers, bootID: bootID, socket: socket,
      program: role.program, recordWriter: recordWriter, senses: senses, starter: starter,
      supervision: supervision, endedRuns: endedRuns, listening: listening, planner: launchPlanner,
      conversations: conversations, processes: processes, ends: ends))
  private lazy var processes = ProcessHolder(
    loop: services.loop, jobs: services.jobs, processes: services.processes,
    probes: senses.probes, driver: driver, log: services.log,
    host: ProcessesOfDaemon(
      services: services, kernelKills: senses.kernelKills, sleeps: sleeps, ends: ends))
  private lazy var firstMoments = FirstMoments(
    timers: services.loop, driver: driver, workers: workers, requests: requests,
    restarts: restarts, scanner: senses.scanner)
  private lazy var memory = KernelMemory(
    services, state, keeper: keeperStarter, standby: standbyStarter,
    resumeChoice: ResumeChoice(override: role.resumeOverride))
  private lazy var sleeps = WorkerSleeps(
    driver: driver, workers: workers, timers: services.loop, watches: services.loop,
    memory: memory, imageDisk: senses.imageDisk, costs: senses.hibernationCosts,
    managers: managers, log: services.log, kill: { [ends] in ends.kill($0) })
  private lazy var ends: WorkerEnds = WorkerEnds(
    services: services, driver: driver, workers: workers, requests: requests, senses: senses,
    snapshots: snapshots, launchPlanner: launchPlanner, restarts: restarts, listening: listening,
    supervision: supervision, endedRuns: endedRuns, program: role.program,
    keepLastLines: { [chronicle] in chronicle.keep(lastLines: $1, of: $0) },
    externalRootHasEnded: { [unowned self] in external.adoption.externalRootHasEnded($0) })
  private lazy var endedRuns = EndedRuns(
    driver: driver, workers: workers, requests: requests, supervision: supervision)
  private lazy var orphans = OrphanReaper(
    timers: services.loop, processes: services.processes, workers: workers, launcher: launcher,
    senses: senses, hooks: hooks)
  private lazy var pendingSignals = PendingSignals(
    timers: services.loop, driver: driver, workers: workers)

  // MARK: talk

  private lazy var conversations = WorkerConversations(
    services: services, timers: services.loop, watches: services.loop, driver: driver,
    workers: workers, reloads: reloads, watchdogs: senses.watchdogs, snapshots: snapshots,
    recordWriter: recordWriter)
  private lazy var sheds = WorkerSheds(
    services: services, driver: driver, workers: workers, meter: senses.meter,
    scanner: senses.scanner, liveness: senses.liveness)
  private lazy var reloads = WorkerReloads(
    timers: services.loop, driver: driver, workers: workers, phase: phase, returning: returning,
    requests: requests, wrappers: wrappers, restarts: restarts,
    hibernation: services.hibernation, log: services.log)

  // MARK: workers of an earlier daemon, of another supervisor and of wrappers

  private lazy var survivors = SurvivorAdoption(
    driver: driver, workers: workers, returning: returning, timers: services.loop,
    host: SurvivorsOfDaemon(
      .init(
        services: services, state: state, driver: driver, workers: workers, bootID: bootID,
        environment: environment, recordWriter: recordWriter, learnedMemory: learnedMemory,
        snapshots: snapshots, restarts: restarts, conversations: conversations,
        planner: launchPlanner, processes: processes, keeperStarter: keeperStarter,
        watchdogs: senses.watchdogs, configuration: configuration.current)))
  private lazy var standbyStarter = StandbyStarter.pager(
    jobs: services.jobs, hibernation: services.hibernation, log: services.log,
    hasSuccessors: role.hasSuccessor)
  private lazy var keeperStarter = KeeperStarter(
    DescriptorKeeperMeans(
      path: state.path + "/keeper.sock", hibernation: services.hibernation,
      daemonLog: services.log),
    hasSuccessors: role.hasSuccessor)
  private lazy var external: ExternalWorkers = ExternalWorkers(
    driver, bootID: bootID,
    .init(
      services: services, state: state, workers: workers, phase: phase, requests: requests,
      wrappers: wrappers, restarts: restarts, processes: processes, ends: ends,
      supervision: supervision, recordWriter: recordWriter, declared: declared,
      listening: listening, configuration: configuration))
  private lazy var managers = ManagerWatching(driver, workers, timers: services.loop) {
    [hibernation = services.hibernation] in hibernation.prioritize($0.name)
  }
  private lazy var wrappers = RegisteredWrappers(
    driver: driver, workers: workers, clock: services.loop, host: WrapperSockets(services, control))

  // MARK: requests, directives, the end

  private lazy var directives = DirectiveExecution(
    .init(
      services: services, driver: driver, workers: workers, wrappers: wrappers, launcher: launcher,
      sheds: sheds, conversations: conversations, senses: senses, sleeps: sleeps, ends: ends,
      restarts: restarts, supervision: supervision, recordWriter: recordWriter, jetsam: jetsam,
      pressure: pressure, ending: ending, externals: external.adoption, program: role.program))
  private lazy var configurationHost = ReloadOfDaemon(
    .init(
      services: services, driver: driver, workers: workers, phase: phase, requests: requests,
      configuration: configuration, read: read, chronicle: chronicle, pressure: pressure,
      supervision: supervision, starter: starter, declared: declared,
      listening: listening, schedules: schedules, encryption: senses.encryption, restarts: restarts,
      returning: returning, followRules: external.rules.follow, followHooks: hooks.follow))
  private lazy var reloader = configurationHost.makeReloader()
  private lazy var controlHost = ControlOfDaemon(
    .init(
      services: services, driver: driver, workers: workers, phase: phase, ending: ending,
      requests: requests, role: role, version: version, freezer: freezer, state: state,
      configuration: configuration, chronicle: chronicle, snapshots: snapshots, jetsam: jetsam,
      learnedMemory: learnedMemory, planner: launchPlanner, senses: senses, pressure: pressure,
      restarts: restarts, starter: starter, supervision: supervision, firstMoments: firstMoments,
      schedules: schedules, reloads: reloads, reloader: reloader, externals: external.adoption,
      rules: external.rules, wrappers: wrappers, cgroups: cgroups, socket: socket, hooks: hooks))
  private lazy var hooks = HookRunner(
    services, chronicle, from: configuration, workers: workers, environment: environment)
  private lazy var statusReporter = StatusReporter(driver, controlHost, clock: services.loop)
  private lazy var ending = DaemonEnd(
    driver: driver, workers: workers, returning: returning, requests: requests,
    externals: external.adoption, starter: starter, recordWriter: recordWriter,
    listening: listening, control: control, timers: services.loop, phase: phase,
    log: services.log)
  private lazy var signals = DaemonSignals(
    services, orphans: orphans, reloader: reloader, ending: ending)

  public convenience init(_ settings: DaemonSettings) throws(StartError) {
    clinux_keep_heap_small()
    try self.init(settings, .daemon())
  }

  package init(_ settings: DaemonSettings, _ role: DaemonRole) throws(StartError) {
    self.role = role
    configuration = ConfigurationInForce(settings.configuration)
    socket = settings.socket
    environment = settings.environment
    version = settings.version
    read = settings.reload
    let log = role.log
    // Checked before anything is created that would have to be removed again.
    try ControlListener.check(path: settings.socket)
    state = try StateDirectory(path: settings.stateDirectory)
    do throws(SystemCallError) { bootID = try BootMark.current() } catch {
      throw .system(error)
    }
    let records: WorkerRecordKeeper
    do throws(WorkerRecordError) {
      records = try WorkerRecordKeeper(directory: state.workers)
    } catch { throw .socket(path: state.workers, error.description) }
    do throws(SystemCallError) {
      services = try Services(
        log: log, records: records,
        hibernation: HibernationService(
          features: OwnProcess.kernelFeatures(), separatesWorkers: true))
    } catch { throw .system(error) }
    control = ControlSocket(path: settings.socket, services.loop, log)
    stoppedByPerson = StoppedByPerson(path: state.path + "/stopped", files: services.stateFiles)
    jetsam = JetsamKeeper(
      directory: state.jetsam, disk: services.disk, loop: services.loopReturn, log: log)
    snapshots = SnapshotKeeper(directory: state.snapshots, disk: services.disk, log: log)
    learnedMemory = LearnedMemoryKeeper(
      path: role.hasSuccessor ? state.path + "/memory" : nil, services)
    driver = EngineDriver(
      Engine(policy: settings.configuration.policy, remembering: learnedMemory.takeLearned()),
      clock: services.loop,
      replies: RequestReplies(
        SavedRecords(records, services.loopReturn), timers: services.loop))
    requests = WorkerRequests(driver, returning)
    restarts = RestartSupervisor(
      timers: services.loop, stopped: stoppedByPerson, phase: phase, driver: driver,
      workers: workers, log: log)
    starter = DependencyStarter(
      clock: services.loop, driver: driver, workers: workers, returning: returning,
      restarts: restarts, requests: requests)
    restarts.connect(starter)
    recordWriter = WorkerRecordWriter(records: records, bootID: bootID, log: log)
    chronicle = try Chronicle(settings: settings, state: state, log: log)
    limitsObstacle = role.leavesCgroup ? DelegatedGroup.leave() : nil
    // Every daemon of this state directory uses the same cgroup, so that the next one finds it.
    earlierCgroups = CgroupRoot.findEarlier(forStateDirectory: settings.stateDirectory)
    cgroups = role.cgroups(of: settings.stateDirectory, limitsObstacle: limitsObstacle)
    pressure = PressureMonitor(
      services.loop, .kernel(workers: cgroups?.path), send: { [driver] in driver.send($0) },
      log: { log($0, $1) })
    learnedMemory.connect(driver, workers) { [restarts] in restarts.exits(of: $0) }
    driver.connect(directives, [chronicle, launcher])
  }

  deinit { workers.removeAll() }  // A worker's run holds components, and these hold the registry.

  /// Runs until a signal or a request ends it.
  public func run() throws(StartError) {
    defer { state.unlock(after: services) }
    // The kernel refuses this if workers are in it.
    defer {
      cgroups?.remove()
      earlierCgroups?.remove()
    }
    OwnProcess.protect(services.log)
    do throws(SystemCallError) { try signals.follow() } catch { throw .system(error) }
    try openControlSocket()
    pressure.follow(driver.state.policy)
    chronicle.begin(driver.state, at: EventLoop.now) { [phase] in !phase.isClosing }
    FillReports.follow(services.hibernation, loopReturn: services.loopReturn, log: services.log) {
      [unowned self] in senses.meter.measureSoon($0)
    }
    begin()
    do throws(SystemCallError) {
      while !ending.hasEnded {
        try services.loop.turn(until: driver.nextDeadline)
        driver.passDeadlines()
      }
    } catch { throw .system(error) }
    finish()
  }

  /// Takes over the workers of an earlier daemon, and starts the others.
  private func begin() {
    let configured = configuration.current
    declared.introduceWorkers(configured.workers)
    hooks.begin(version: version, socket: socket)
    senses.encryption.tryEncryption(for: configured)
    keeperStarter.collectKeptMemories()
    survivors.adoptSurvivors()
    keeperStarter.takeOverKeeping(of: workers)
    listening.openListeners(of: configured.workers) { [unowned self] in
      if !phase.isClosing { declared.startWorkers(configured.workers) }
    }
    configuration.dropWorkers()
    schedules.follow()
    external.rules.follow(configured.adoption)
    let count = workers.count == 1 ? "1 worker" : "\(workers.count) workers"
    services.log(.info, "ready: \(count), policy \(driver.state.policy.name), \(freezer.text)")
    senses.sampling.sampleRegularly()
    StartupMemory(timers: services.loop, driver: driver, workers: workers, learned: learnedMemory)
      .releaseAfterStart()
    pendingSignals.follow()
    ServiceManager.send("READY=1")
  }

  /// The loop has ended.
  private func finish() {
    ServiceManager.send("STOPPING=1")
    // From here on no client is served, so the daemon may wait for the disk.
    chronicle.close(at: EventLoop.now)
    learnedMemory.close()
    services.records.drain()
    let diskAnswers = services.disk.drain()
    services.socketFiles.drain(within: .seconds(2))
    control.close()
    discardDirectory(ChannelPlan.directory(of: socket))
    if geteuid() == 0 { discardDirectory(ChannelPlan.publicDirectory(of: socket)) }
    // The key is discarded only without images: workers that were left running may still sleep on one.
    if diskAnswers, (try? listDirectory(state.images))?.isEmpty == true {
      BootKey.discard(in: state.images)
    }
  }

  /// - Parameter id: of the only worker, its caller's program.
  package func programRun(of id: WorkerID) -> ProgramRun {
    ProgramRun(
      id,
      .init(
        services: services, driver: driver, workers: workers, configuration: configuration,
        declared: declared, requests: requests, senses: senses, pressure: pressure,
        orphans: orphans, status: statusReporter, ending: ending, control: control,
        cgroups: cgroups,
        openControlSocket: { [unowned self] () throws(StartError) in try openControlSocket() }))
  }

  private func openControlSocket() throws(StartError) {
    try control.open {
      ControlService(
        driver: driver, host: controlHost, following: EventFollowing(chronicle, $0),
        status: statusReporter, log: services.log)
    }
  }

  private var freezer: CodedText { .freezer(hasCgroups: cgroups != nil) }
}
