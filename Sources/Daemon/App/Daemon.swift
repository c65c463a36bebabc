import CLinux
import Control
import Glibc
import Hibernation
import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision

/// The shell around the engine: turns the world's signals into events, and performs directives.
/// Everything here happens on the main thread, where nothing may wait; what may take long is handed to
/// other threads (docs/ARCHITECTURE.md), and its outcome comes back as a message.
public final class Daemon {
  var settings: DaemonSettings
  let services: Services
  let state: StateDirectory
  let cgroups: CgroupRoot?
  /// Where an earlier version kept the workers of this state directory, if that is there.
  let earlierCgroups: CgroupRoot?
  /// Why workers' memory can't be limited, beside what the kernel says.
  let limitsObstacle: DelegatedGroup.Obstacle?
  let bootID: String
  let jetsam: JetsamKeeper
  let snapshots: SnapshotKeeper
  let chronicle: Chronicle
  let learnedMemory: LearnedMemoryKeeper

  let driver: EngineDriver
  /// What the engine knows now.
  var engine: Engine { _read { yield driver.state } }
  let workers = WorkerRegistry()
  private lazy var directives = DirectiveExecution(self)
  private(set) lazy var controlHost = ControlOfDaemon(self)
  var server: ControlServer?
  var control: ControlService?
  private(set) lazy var statusReporter = StatusReporter(driver, controlHost, clock: loop)
  private(set) lazy var survivors = SurvivorAdoption(
    driver, workers, timers: loop, host: SurvivorsOfDaemon(self))
  private(set) lazy var declared = DeclaredWorkers(
    driver, workers, survivors, host: DeclaredOfDaemon(self))
  private(set) lazy var externals = ExternalAdoption(
    driver, workers, host: ExternalsOfDaemon(self))
  private(set) lazy var managers = ManagerWatching(driver, workers, timers: loop) {
    [hibernation] in hibernation.prioritize($0.name)
  }
  private(set) lazy var ending = DaemonEnd(
    EndOfDaemon(self), OrderlyStop(orderlyStopHost))
  private lazy var orderlyStopHost = OrderlyStopOfDaemon(self)
  private(set) lazy var recordWriter = WorkerRecordWriter(
    records: records, bootID: bootID, log: log)
  /// Starts workers when others have come far enough.
  private(set) lazy var dependencyStarter = DependencyStarter(dependencies)
  private lazy var dependencies = DependenciesOfDaemon(self)
  let stoppedByPerson: StoppedByPerson
  private(set) lazy var restarts = RestartSupervisor(
    timers: loop, stopped: stoppedByPerson, host: RestartsOfDaemon(self))
  private(set) lazy var supervision = WorkerSupervision(
    restarts, dependencyStarter, SupervisionOfDaemon(self))
  private(set) lazy var conversations = WorkerConversations(self)
  private(set) lazy var sheds = WorkerSheds(self)
  private(set) lazy var reloads = WorkerReloads(loop, ReloadingOfWorker(self))
  private(set) lazy var sleeps = WorkerSleeps(self)
  private(set) lazy var launcher = WorkerLauncher(driver, loop, LaunchesOfDaemon(self))
  private(set) lazy var launchPlanner = makeLaunchPlanner()
  private(set) lazy var processHolder = ProcessHolder(loop, ProcessesOfDaemon(self))
  private(set) lazy var firstMoments = FirstMoments(loop, restarts, FirstMomentsOfDaemon(self))
  private(set) lazy var logKeeper = makeLogKeeper()
  private(set) lazy var listening = ListeningSockets(self)
  private(set) lazy var pendingSignals = PendingSignals(loop, driver, workers)
  private(set) lazy var schedules = ScheduleMonitor(self)
  private(set) lazy var senses = Senses(self)
  private(set) lazy var ends = WorkerEnds(self)
  private(set) lazy var endedRuns = EndedRuns(EndedRunsOfDaemon(self))
  private(set) lazy var orphans = OrphanReaper(of: self)
  let pressureMonitor: PressureMonitor
  private lazy var configurationHost = ReloadOfDaemon(self)
  private(set) lazy var reloader = configurationHost.makeReloader()
  let role: DaemonRole
  var resumeChoice: ResumeChoice { ResumeChoice(override: role.resumeOverride) }
  private(set) lazy var standbyStarter = StandbyStarter.pager(
    jobs, hibernation, log, hasSuccessors: role.hasSuccessor)
  private(set) lazy var keeperStarter = KeeperStarter(
    DescriptorKeeperMeans(
      path: state.path + "/keeper.sock", hibernation: hibernation, daemonLog: log),
    hasSuccessors: role.hasSuccessor)

  /// Wrappers that have registered here.
  private(set) lazy var wrappers = RegisteredWrappers(
    driver, workers, clock: loop, WrapperSockets(services) { [unowned self] in server })

  // The services by their own names.
  var log: DaemonLog { services.log }
  var loop: EventLoop { services.loop }
  var loopReturn: LoopReturn { services.loopReturn }
  var jobs: LoopJobs { services.jobs }
  var mechanics: JobPool { services.mechanics }
  var killers: JobPool { services.killers }
  var measurers: JobPool { services.measurers }
  var disk: DiskQueue { services.disk }
  var stateFiles: StateFiles { services.stateFiles }
  var socketFiles: SocketFiles { services.socketFiles }
  var records: WorkerRecordKeeper { services.records }
  var hibernation: HibernationService { services.hibernation }

  public convenience init(_ settings: DaemonSettings) throws(StartError) {
    clinux_keep_heap_small()
    try self.init(settings, .daemon())
  }

  init(_ settings: DaemonSettings, _ role: DaemonRole) throws(StartError) {
    self.settings = settings
    self.role = role
    let log = role.log
    // Before anything is made that would have to be taken away again.
    try ControlListener.check(path: settings.socket)
    state = try StateDirectory(path: settings.stateDirectory)
    do throws(SystemCallError) { bootID = try WorkerRecord.currentBootID() } catch {
      throw .system(error)
    }
    var features = KernelFeatures.detect()
    // For measuring what tracking brings, and for doubting it.
    if getenv("DORMOUSE_TRACKING").map({ String(cString: $0) }) == "off" {
      features.writeTracking = false
    }
    let records: WorkerRecordKeeper
    do throws(WorkerRecordError) {
      records = try WorkerRecordKeeper(directory: state.workers)
    } catch { throw .socket(path: state.workers, error.description) }
    do throws(SystemCallError) {
      services = try Services(
        log: log, records: records,
        hibernation: HibernationService(features: features, separatesWorkers: true))
    } catch { throw .system(error) }
    stoppedByPerson = StoppedByPerson(path: state.path + "/stopped", files: services.stateFiles)
    jetsam = JetsamKeeper(directory: state.jetsam, services.disk, services.loopReturn, log)
    snapshots = SnapshotKeeper(directory: state.snapshots, disk: services.disk, log: log)
    learnedMemory = LearnedMemoryKeeper(
      path: role.hasSuccessor ? state.path + "/memory" : nil, services)
    driver = EngineDriver(
      Engine(
        policy: settings.configuration.policy,
        remembering: learnedMemory.learned),
      clock: services.loop,
      replies: RequestReplies(
        SavedRecords(records, services.loopReturn), timers: services.loop))
    chronicle = try Chronicle(settings, state, log)
    pressureMonitor = PressureMonitor(
      services.loop, send: { [driver] in driver.send($0) }, log: { log($0, $1) })

    limitsObstacle = role.leavesCgroup ? DelegatedGroup.leave() : nil
    // The same group for every daemon of this state directory, so that the next one finds it.
    earlierCgroups = CgroupRoot.find(
      name: CgroupRoot.oldName(forStateDirectory: settings.stateDirectory))
    do throws(CgroupError) {
      cgroups = try CgroupRoot.detect(
        name: CgroupRoot.name(forStateDirectory: settings.stateDirectory))
    } catch {
      cgroups = nil
      log(.notice, "no cgroup for the workers, they will be stopped by signal: \(error)")
    }
    driver.connect(directives, [chronicle])
    learnedMemory.connect(driver, workers) { [unowned self] in restarts.exits(of: $0) }
  }

  /// Runs until it is told to end.
  public func run() throws(StartError) {
    defer { log.drain() }
    // Refused where workers are in it.
    defer {
      cgroups?.remove()
      earlierCgroups?.remove()
    }
    protectItself()
    do throws(SystemCallError) {
      try watchSignals()
    } catch { throw .system(error) }
    try controlHost.openControlSocket()
    pressureMonitor.follow(engine.policy)
    chronicle.begin(engine, at: EventLoop.now)
    FillReports.follow(hibernation, loopReturn, log) { [unowned self] in
      senses.meter.measure($0)
    }
    declared.introduceWorkers(settings.configuration.workers)
    senses.encryption.tryEncryption(for: settings.configuration)
    keeperStarter.collectKeptMemories()
    survivors.adoptSurvivors()
    keeperStarter.takeOverKeeping(of: workers)
    listening.openListeners(of: settings.configuration.workers)
    declared.startWorkers(settings.configuration.workers)
    // From here on, each worker has its own; a reload brings a new list.
    settings.configuration.workers = []
    schedules.follow()
    let count = workers.count == 1 ? "1 worker" : "\(workers.count) workers"
    log(.info, "ready: \(count), policy \(engine.policy.name), \(freezer.text)")
    senses.sampling.sampleRegularly()
    StartupMemory(loop, driver, workers, learnedMemory).releaseAfterStart()
    pendingSignals.follow()
    ServiceManager.tell("READY=1")
    do throws(SystemCallError) {
      while !ending.hasEnded {
        try loop.turn(until: driver.nextDeadline)
        driver.passDeadlines()
      }
    } catch { throw .system(error) }
    ServiceManager.tell("STOPPING=1")
    // From here on no client is served any more, and the disk may be waited for.
    chronicle.close(at: EventLoop.now)
    learnedMemory.close()
    records.drain()
    let diskAnswers = disk.drain()
    socketFiles.drain(within: .seconds(2))
    server?.close()
    rmdir(ChannelPlan.directory(of: settings.socket))
    if geteuid() == 0 { rmdir(ChannelPlan.publicDirectory(of: settings.socket)) }
    // Workers that were left alone may still sleep on one.
    if diskAnswers, (try? listDirectory(state.images))?.isEmpty == true {
      BootKey.discard(in: state.images)
    }
  }

  /// It must be able to act when there is no memory left, and must not be chosen for the lack of it.
  private func protectItself() {
    if clinux_become_subreaper() < 0 {
      log(.warning, "can't adopt orphans of workers (PR_SET_CHILD_SUBREAPER)")
    }
    clinux_stay_out_of_core_files()
    // A worker costs ten descriptors and more, and 1024 is the usual limit.
    clinux_raise_descriptor_limit()
    _ = clinux_lock_memory()
    spareItselfFromTheKernel()
    signal(SIGPIPE, SIG_IGN)
    // A limit on the size of files (setrlimit(2)) is an error of write(2), and not the end.
    signal(SIGXFSZ, SIG_IGN)
  }

  /// Lowers the daemon's own oom_score_adj where that is permitted. No worker gets a protected one, also
  /// where the daemon was started with it (`OOMScoreAdjust=` in its unit).
  private func spareItselfFromTheKernel() {
    guard let before = useWorkersOOMScore(), before > -900 else { return }
    do throws(SystemCallError) {
      try writeControl(Self.oomScorePath, "-900")
    } catch {
      log(.info, "the kernel's own OOM killer may choose the daemon: \(error)")
    }
  }

  private static let oomScorePath = "/proc/self/oom_score_adj"

  /// From now on, programs are started with the value for workers. Ours, if it is known.
  @discardableResult
  func useWorkersOOMScore() -> Int32? {
    // Without /proc there is nothing to inherit that could be seen or changed.
    guard let own = (try? readText(Self.oomScorePath)).flatMap({ Int32($0.prefix { $0 != "\n" }) })
    else { return nil }
    clinux_spawn_with_oom_score(OOMScore.ofWorkers(own: own))
    return own
  }

  /// Asks the engine on behalf of somebody, and calls back with its answer.
  ///
  /// - Parameter asked: when; `nil`: now.
  func request(
    _ verb: Request.Verb, _ worker: WorkerID, asked: Instant? = nil,
    then answer: @escaping (Answer) -> Void
  ) {
    let isWaiting = survivors.whenBack(worker) { [unowned self] in
      request(verb, worker, asked: asked, then: answer)
    }
    if !isWaiting { driver.request(verb, worker, asked: asked, then: answer) }
  }

  private func makeLaunchPlanner() -> LaunchPlanner {
    let ground = LaunchGround(
      cgroups: cgroups, earlierCgroups: earlierCgroups, limitsObstacle: limitsObstacle,
      records: records.store, logs: state.logs, socket: settings.socket,
      inheritance: role.program?.inheritance)
    return LaunchPlanner(ground, restarts) { [log] in
      log($0, $1)
    } limit: { [mechanics, loopReturn] id, cgroup, limit, then in
      let failed = loopReturn.callback { (error: SystemCallError?) in if let error { then(error) } }
      mechanics.submit(about: id.name) {
        do throws(SystemCallError) {
          try cgroup.limitMemory(to: limit.bytes)
          failed(nil)
        } catch { failed(error) }
      }
    }
  }

  private func makeLogKeeper() -> LogKeeper {
    LogKeeper(loop) { [jobs] id, rotation, then in
      // As long as it takes: a large log and a slow disk take seconds.
      jobs.run(about: "log size of \(id)", within: .seconds(3600)) {
        Daemon.failure { try rotation.rotateIfTooLarge() }
      } then: { outcome in
        if case .done(let failure) = outcome { then(failure) } else { then(nil) }
      }
    } log: { [log] in
      log($0, $1)
    }
  }

  // MARK: the end

  private func watchSignals() throws(SystemCallError) {
    _ = clinux_ignore_stops_of_children()
    let signals = try SignalQueue([SIGTERM, SIGINT, SIGHUP, SIGCHLD])
    try loop.watch(signals.descriptor, .readable) { [unowned self] _ in
      for signal in signals.arrivals() { handle(signal: signal.number) }
    }
  }

  private func handle(signal: Int32) {
    if signal == SIGCHLD {
      // A traced worker's end is hidden until its tracer looks; orphans must be reaped.
      hibernation.reapChildren()
      orphans.reapOrphans()
    } else if signal == SIGHUP {
      reloader.reload(allowEmpty: false) { [log] in
        log($0.isDone ? .notice : .error, "reload: \($0.text)")
      }
    } else {
      ending.signalHasCome()
    }
  }

  // What others call by these names.
  var isEnding: Bool { ending.isEnding }
  var isLeaving: Bool { ending.isLeaving }
  func end() { ending.end() }
  func leave() { ending.leave() }

  /// Also of a worker that is being brought back.
  func isAlive(_ id: WorkerID) -> Bool {
    survivors.isAdopting(id) || engine.state(of: id)?.isAlive == true
  }

  func saveRecord(_ runtime: WorkerUnit, state: WorkerState) {
    recordWriter.save(runtime, state: state)
  }

  func adopt(_ request: ControlRequest, then respond: @escaping (ControlResponse) -> Void) {
    externals.adopt(request, then: respond)
  }

  func release(_ request: ControlRequest, then respond: @escaping (ControlResponse) -> Void) {
    externals.release(request, then: respond)
  }

  func foreignRefusal(_ verb: Request.Verb, _ id: WorkerID) -> String? {
    externals.foreignRefusal(verb, id)
  }

  /// Why `body` failed; nil: it didn't.
  static func failure(_ body: () throws -> Void) -> String? {
    do {
      try body()
      return nil
    } catch { return "\(error)" }
  }

  var freezer: CodedText {
    cgroups == nil
      ? CodedText("sigstop", "SIGSTOP") : CodedText("cgroup_v2_freezer", "cgroup-v2 freezer")
  }
}
