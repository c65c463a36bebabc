import Control
import Glibc
import Lifecycle
import Linux
import Policy
import PolicyFile

/// What `ControlService` and its reports get of the daemon.
final class ControlOfDaemon: ControlHost {
  struct Parts {
    let services: Services
    let driver: EngineDriver
    let workers: WorkerRegistry
    let phase: DaemonPhase
    let ending: DaemonEnd
    let requests: WorkerRequests
    let role: DaemonRole
    let version: String
    let freezer: CodedText
    let state: StateDirectory
    let configuration: ConfigurationInForce
    let chronicle: Chronicle
    let snapshots: SnapshotKeeper
    let jetsam: JetsamKeeper
    let learnedMemory: LearnedMemoryKeeper
    let planner: LaunchPlanner
    let senses: Senses
    let pressure: PressureMonitor
    let restarts: RestartSupervisor
    let starter: DependencyStarter
    let supervision: WorkerSupervision
    let firstMoments: FirstMoments
    let schedules: ScheduleMonitor
    let reloads: WorkerReloads
    let reloader: ConfigurationReloader
    let externals: ExternalAdoption
    let rules: RuleAdoption
    let wrappers: RegisteredWrappers
    let cgroups: CgroupRoot?
    let socket: String
    var hooks: HookRunner?
  }

  private let parts: Parts
  private lazy var examination = SelfExamination(
    parts.services.jobs,
    examine: ExaminationProgram(stateDirectory: parts.state.path, socket: parts.socket).run)

  init(_ parts: Parts) { self.parts = parts }

  private var workers: WorkerRegistry { parts.workers }

  // MARK: reports

  func facts(of id: WorkerID) -> WorkerFacts? {
    guard let runtime = workers[id] else { return nil }
    let configuration = runtime.configuration
    var facts = WorkerFacts(policy: runtime.profile.policy)
    facts.command = runtime.launched?.command ?? configuration.command
    facts.groups = configuration.groups
    facts.isDeclared = runtime.isDeclared
    facts.isAdopted = runtime.external != nil
    facts.rule = runtime.external?.rule
    facts.hasChosenPolicy = runtime.external?.chosen != nil
    facts.changedSinceLaunch = runtime.keysChangedSinceLaunch
    facts.reloadSignal = configuration.reloadSignal
    let program = parts.role.program
    if runtime.external == nil {
      facts.log = program.map(\.logPath) ?? parts.planner.logPath(of: runtime)
      facts.logUser = parts.planner.logUser(of: runtime)
      facts.logTimes = program == nil ? parts.state.logTimes(of: id.name) : nil
    }
    facts.wrapper = program.map {
      WrapperFacts(pid: getpid(), wakes: $0.wakes, host: $0.host, directory: $0.directory)
    }
    facts.says = runtime.conversation?.statusText
    facts.connections = runtime.conversation?.connectionCount
    facts.talk = runtime.conversation?.withoutEffect
    facts.imageLength = runtime.image?.length
    facts.baseSize = runtime.image == nil ? parts.senses.imageDisk.base(of: id.name) : 0
    facts.lastHibernation = runtime.lastHibernation
    facts.restoreMode = runtime.sleep?.restoreMode
    facts.stoppedWork = runtime.wakeWatch?.stoppedWork
    facts.unwatched = runtime.wakeWatch?.unwatched ?? []
    facts.plans = plans(of: runtime)
    facts.activity = { [parts, now] in
      parts.chronicle.uses.uses(of: id).map {
        ActivityReport(
          $0, policy: runtime.profile.policy, launchedAt: parts.restarts.launchedAt(of: id),
          sign: runtime.sample.sign, source: runtime.sample.source,
          isServer: !runtime.sample.ports.isEmpty, at: now)
      }
    }
    (facts.process, facts.signOfUse) = (runtime.process, runtime.sample.sign)
    (facts.source, facts.ports) = (runtime.sample.source, runtime.sample.ports)
    facts.measured = runtime.measuring.last.map { ($0.reclaimable, $0.sharedByFork, $0.at) }
    return facts
  }

  private func plans(of runtime: WorkerUnit) -> WorkerPlans {
    let (id, restarts) = (runtime.id, parts.restarts)
    let awaited = parts.starter.awaited(by: id)
    return WorkerPlans(
      exits: restarts.exits(of: id) ?? [], restarts: restarts.restarts(of: id),
      restart: restarts.plan(of: id), awaited: awaited?.text,
      awaitedWorkers: awaited?.workers ?? [], problem: restarts.problem(of: id),
      hasGivenUp: restarts.hasGivenUp(id),
      livenessFailure: runtime.liveness?.lastFailure,
      nextWake: parts.schedules.next(runtime.configuration.wakeAt, after: Int64(time(nil))),
      answeredAsleep: runtime.wakeWatch?.answeredCount)
  }

  func daemonFacts() -> DaemonFacts {
    DaemonFacts(
      version: parts.version, freezer: parts.freezer, stateDirectory: parts.state.path,
      configuration: parts.configuration.current.file, limitedBy: parts.pressure.limitedBy,
      imageCosts: parts.senses.imageDisk.costs, savings: parts.chronicle.savings(at: now))
  }

  func savings(of id: WorkerID) -> RecentSavingsReport {
    parts.chronicle.savings(of: id, at: now)
  }

  func policyFacts() -> PolicyFacts {
    PolicyFacts(
      origins: parts.configuration.current.origins, resumeOverride: parts.role.resumeOverride,
      isWrapper: parts.role.program != nil)
  }

  func counters(of id: WorkerID, at now: Instant) -> WorkerCounters {
    WorkerCounters(
      parts.chronicle.tally(of: id, at: now), written: workers[id]?.imageBytesWritten ?? 0)
  }

  func measurements(at now: Instant) -> DaemonMeasurements {
    var measured = DaemonMeasurements(parts.chronicle.counts, parts.driver.state, at: now)
    measured.hooks = parts.hooks?.report
    return measured
  }

  func leads(_ id: WorkerID) -> Bool { parts.wrappers.leads(id) }

  func wrappedReport(of name: String, at now: Instant) -> WorkerReport? {
    parts.wrappers.report(of: name)
  }

  func wrappedReports(at now: Instant) -> [WorkerReport] { parts.wrappers.reports() }

  func withRecentScan(then: @escaping (ProcessScan?) -> Void) {
    parts.senses.scanner.withRecentScan(of: workers.values, then: then)
  }

  func scanProcesses(then: @escaping (ProcessScan?) -> Void) {
    parts.senses.scanner.scanProcesses(then: then)
  }

  func loadSnapshot(of name: String, then: @escaping (SnapshotStore.Snapshot?) -> Void) {
    parts.snapshots.load(name, then: parts.services.loopReturn.callback(then))
  }

  var jetsamIDs: [String] { parts.jetsam.ids }

  func loadJetsam(_ id: String, then: @escaping (JetsamRecord?) -> Void) {
    parts.jetsam.load(id, then: then)
  }

  func examineItself(
    then: @escaping (Result<DaemonExamination, ExaminationFailure>) -> Void
  ) {
    examination.examine { [unowned self] outcome in
      then(outcome.map { DaemonExamination(context: context(user: $0.user), report: $0) })
    }
  }

  private func context(user: UInt32) -> DaemonContext {
    let engine = parts.driver.state
    return DaemonContext(
      user: user, cgroup: parts.cgroups?.path, freezer: parts.freezer,
      hibernation: engine.policy.permittedHibernation,
      hibernated: engine.snapshots(at: now).count { $0.state == .hibernated })
  }

  func saveJournal(then: @escaping (JournalPlace) -> Void) {
    var place: JournalPlace?
    let saved: @Sendable (Bool) -> Void = parts.services.loopReturn.callback { _ in
      if let place { then(place) }
    }
    place = parts.chronicle.save(at: now) { saved(true) }
  }

  func isWrapped(_ worker: String?) -> Bool { parts.wrappers.isWrapped(worker) }

  // MARK: verbs

  var now: Instant { EventLoop.now }
  var isEnding: Bool { parts.phase.isEnding }
  var isLeaving: Bool { parts.phase.isLeaving }
  func end() { parts.ending.end() }
  func leave() { parts.ending.leave() }
  func isAlive(_ id: WorkerID) -> Bool { parts.requests.isAlive(id) }

  func request(
    _ verb: Request.Verb, _ id: WorkerID, asked: Instant?, lasting: Duration?,
    then answer: @escaping (Answer) -> Void
  ) {
    parts.requests.request(verb, id, asked: asked, lasting: lasting, then: answer)
  }

  func foreignRefusal(_ verb: Request.Verb, _ id: WorkerID) -> String? {
    parts.externals.foreignRefusal(verb, id)
  }

  func personAsks(_ verb: Request.Verb, _ id: WorkerID) { parts.supervision.personAsks(verb, id) }

  func adopt(_ request: ControlRequest, then respond: @escaping (ControlResponse) -> Void) {
    parts.externals.adopt(request, then: respond)
  }

  func release(_ request: ControlRequest, then respond: @escaping (ControlResponse) -> Void) {
    parts.externals.release(request, then: respond)
  }

  func previewAdoption(then: @escaping (AdoptionPreviewReport?) -> Void) {
    let preview = parts.rules.preview(footprint: parts.driver.state.footprint)
    parts.services.jobs.run(about: "preview of rules", within: .seconds(20), preview.perform) {
      guard case .done(let report) = $0 else { return then(nil) }
      then(report)
    }
  }

  func reloadWorker(_ request: ControlRequest, then respond: @escaping (ControlResponse) -> Void) {
    parts.reloads.reloadWorker(request, then: respond)
  }

  func relay(
    _ request: ControlRequest, patience: Duration, then respond: @escaping (ControlResponse) -> Void
  ) {
    parts.wrappers.relay(request, patience: patience, then: respond)
  }

  func start(_ id: WorkerID, _ verb: Request.Verb, then answer: @escaping (Answer) -> Void) {
    parts.starter.start(id, verb) { [firstMoments = parts.firstMoments] in
      firstMoments.watch(id, $0, then: answer)
    }
  }

  func launch(
    _ configuration: WorkerConfiguration, environment: [String: String],
    then answer: @escaping (Answer) -> Void
  ) {
    let runtime = WorkerUnit(
      configuration: configuration, environment: environment, isDeclared: false)
    let id = runtime.id
    parts.restarts.add(id, exits: parts.learnedMemory.rememberedExits(of: id))
    workers[id] = runtime
    parts.driver.send(.added(id, runtime.profile))
    parts.requests.request(.start, id) { [firstMoments = parts.firstMoments] in
      firstMoments.watch(id, $0, then: answer)
    }
  }

  func remove(_ id: WorkerID, then done: @escaping (_ failure: String?) -> Void) {
    parts.supervision.removeWorker(id)
    parts.driver.send(.removed(id))
    let logs = parts.state.logs
    parts.services.jobs.run(about: "log of \(id)", within: .seconds(20)) {
      WorkerLogs.remove(of: id.name, from: logs)
    } then: { outcome in
      switch outcome {
      case .done(let failure): done(failure?.description)
      case .overdue: done("the disk doesn't answer")
      case .busy: done("its removal is under way")
      }
    }
  }

  func reload(allowEmpty: Bool, then report: @escaping (ReloadOutcome) -> Void) {
    parts.reloader.reload(allowEmpty: allowEmpty, then: report)
  }

  func previewReload(allowEmpty: Bool, then report: @escaping (ReloadOutcome) -> Void) {
    parts.reloader.preview(allowEmpty: allowEmpty, then: report)
  }

  func sendDiskReading(then done: @escaping () -> Void) {
    parts.senses.imageDisk.sendReading(then: done)
  }

  func prioritize(_ id: WorkerID) { parts.services.hibernation.prioritize(id.name) }

  func register(_ wrapper: WrapperReport?, from client: ClientID) -> String? {
    parts.wrappers.register(wrapper, from: client)
  }

  func hasLeft(_ client: ClientID) { parts.wrappers.hasLeft(client) }
}
