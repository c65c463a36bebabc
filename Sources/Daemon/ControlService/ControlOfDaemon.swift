import Control
import Glibc
import Lifecycle
import Linux
import Policy
import PolicyFile

/// What `ControlService` and its reports get of the daemon.
final class ControlOfDaemon: ControlHost {
  private unowned let daemon: Daemon
  private lazy var examination = SelfExamination(
    daemon.jobs, examine: ExaminationProgram(daemon.settings).run)

  init(_ daemon: Daemon) { self.daemon = daemon }

  private var workers: WorkerRegistry { daemon.workers }

  // MARK: reports

  func facts(of id: WorkerID) -> WorkerFacts? {
    guard let runtime = workers[id] else { return nil }
    let configuration = runtime.configuration
    var facts = WorkerFacts(policy: runtime.profile.policy)
    facts.command = runtime.launched?.command ?? configuration.command
    facts.isDeclared = runtime.isDeclared
    facts.isAdopted = runtime.external != nil
    facts.changedSinceLaunch = runtime.keysChangedSinceLaunch
    facts.reloadSignal = configuration.reloadSignal
    let program = daemon.role.program
    if runtime.external == nil {
      facts.log = program.map(\.logPath) ?? daemon.launchPlanner.logPath(of: runtime)
    }
    facts.wrapper = program.map { (getpid(), $0.wakes) }
    facts.says = runtime.conversation?.statusText
    facts.connections = runtime.conversation?.connectionCount
    facts.talk = runtime.conversation?.withoutEffect
    facts.imageLength = runtime.image?.length
    facts.baseSize = runtime.image == nil ? daemon.senses.imageDisk.base(of: id.name) : 0
    facts.lastHibernation = runtime.lastHibernation
    facts.restoreMode = runtime.sleep?.restoreMode
    facts.unwatched = runtime.wakeWatch?.unwatched ?? []
    facts.plans = plans(of: runtime)
    facts.process = runtime.process
    facts.measured = runtime.measuring.last.map { ($0.reclaimable, $0.at) }
    return facts
  }

  private func plans(of runtime: WorkerUnit) -> WorkerPlans {
    let (id, restarts) = (runtime.id, daemon.restarts)
    return WorkerPlans(
      exits: restarts.exits(of: id) ?? [], restarts: restarts.restarts(of: id),
      restart: restarts.plan(of: id), awaited: daemon.dependencyStarter.awaited(by: id),
      problem: restarts.problem(of: id), livenessFailure: runtime.liveness?.lastFailure,
      nextWake: daemon.schedules.next(runtime.configuration.wakeAt, after: Int64(time(nil))),
      answeredAsleep: runtime.wakeWatch?.answeredCount)
  }

  func daemonFacts() -> DaemonFacts {
    DaemonFacts(
      version: daemon.settings.version, freezer: daemon.freezer, stateDirectory: daemon.state.path,
      imageCosts: daemon.senses.imageDisk.costs)
  }

  func policyFacts() -> PolicyFacts {
    PolicyFacts(
      origins: daemon.settings.configuration.origins, resumeOverride: daemon.role.resumeOverride,
      isWrapper: daemon.role.program != nil)
  }

  func leads(_ id: WorkerID) -> Bool { daemon.wrappers.leads(id) }

  func wrappedReport(of name: String, at now: Instant) -> WorkerReport? {
    daemon.wrappers.report(of: name)
  }

  func wrappedReports(at now: Instant) -> [WorkerReport] { daemon.wrappers.reports() }

  func withRecentScan(then: @escaping (ProcessScan?) -> Void) {
    daemon.senses.scanner.withRecentScan(of: workers.values, then: then)
  }

  func scanProcesses(then: @escaping (ProcessScan?) -> Void) {
    daemon.senses.scanner.scanProcesses(then: then)
  }

  func loadSnapshot(of name: String, then: @escaping (SnapshotStore.Snapshot?) -> Void) {
    daemon.snapshots.load(name, then: daemon.loopReturn.callback(then))
  }

  var jetsamIDs: [String] { daemon.jetsam.ids }

  func loadJetsam(_ id: String, then: @escaping (JetsamRecord?) -> Void) {
    daemon.jetsam.load(id, then: then)
  }

  func examineItself(
    then: @escaping (Result<DaemonExamination, ExaminationFailure>) -> Void
  ) {
    examination.examine { [unowned self] outcome in
      then(outcome.map { DaemonExamination(context: context(user: $0.user), report: $0) })
    }
  }

  private func context(user: UInt32) -> DaemonContext {
    let engine = daemon.driver.state
    return DaemonContext(
      user: user, cgroup: daemon.cgroups?.path, freezer: daemon.freezer,
      hibernation: engine.policy.permittedHibernation,
      hibernated: engine.snapshots(at: now).count { $0.state == .hibernated })
  }

  func saveJournal(then: @escaping (JournalPlace) -> Void) {
    var place: JournalPlace?
    let saved: @Sendable (Bool) -> Void = daemon.loopReturn.callback { _ in
      if let place { then(place) }
    }
    place = daemon.chronicle.save(at: now) { saved(true) }
  }

  func isWrapped(_ worker: String?) -> Bool { daemon.wrappers.isWrapped(worker) }

  // MARK: verbs

  /// Lets clients in.
  func openControlSocket() throws(StartError) {
    let server = try ControlServer(path: daemon.settings.socket, daemon.loop, daemon.log)
    let service = ControlService(
      daemon.driver, self, EventFollowing(daemon.chronicle, server), daemon.statusReporter,
      daemon.log)
    try server.connect(service)
    (daemon.server, daemon.control) = (server, service)
  }

  var now: Instant { EventLoop.now }
  var isEnding: Bool { daemon.isEnding }
  var isLeaving: Bool { daemon.isLeaving }
  func end() { daemon.end() }
  func leave() { daemon.leave() }
  func isAlive(_ id: WorkerID) -> Bool { daemon.isAlive(id) }

  func request(
    _ verb: Request.Verb, _ id: WorkerID, asked: Instant?, then answer: @escaping (Answer) -> Void
  ) {
    daemon.request(verb, id, asked: asked, then: answer)
  }

  func foreignRefusal(_ verb: Request.Verb, _ id: WorkerID) -> String? {
    daemon.foreignRefusal(verb, id)
  }

  func personAsks(_ verb: Request.Verb, _ id: WorkerID) { daemon.supervision.personAsks(verb, id) }

  func adopt(_ request: ControlRequest, then respond: @escaping (ControlResponse) -> Void) {
    daemon.adopt(request, then: respond)
  }

  func release(_ request: ControlRequest, then respond: @escaping (ControlResponse) -> Void) {
    daemon.release(request, then: respond)
  }

  func reloadWorker(_ request: ControlRequest, then respond: @escaping (ControlResponse) -> Void) {
    daemon.reloads.reloadWorker(request, then: respond)
  }

  func relay(
    _ request: ControlRequest, patience: Duration, then respond: @escaping (ControlResponse) -> Void
  ) {
    daemon.wrappers.relay(request, patience: patience, then: respond)
  }

  func start(_ id: WorkerID, _ verb: Request.Verb, then answer: @escaping (Answer) -> Void) {
    daemon.dependencyStarter.start(id, verb) { [unowned daemon] in
      daemon.firstMoments.watch(id, $0, then: answer)
    }
  }

  func launch(
    _ configuration: WorkerConfiguration, environment: [String: String],
    then answer: @escaping (Answer) -> Void
  ) {
    let runtime = WorkerUnit(
      configuration: configuration, environment: environment, isDeclared: false)
    let id = runtime.id
    daemon.restarts.add(id, exits: daemon.learnedMemory.rememberedExits(of: id))
    workers[id] = runtime
    daemon.driver.send(.added(id, runtime.profile))
    daemon.request(.start, id) { [unowned daemon] in
      daemon.firstMoments.watch(id, $0, then: answer)
    }
  }

  func reload(allowEmpty: Bool, then report: @escaping (ReloadOutcome) -> Void) {
    daemon.reloader.reload(allowEmpty: allowEmpty, then: report)
  }

  func previewReload(allowEmpty: Bool, then report: @escaping (ReloadOutcome) -> Void) {
    daemon.reloader.preview(allowEmpty: allowEmpty, then: report)
  }

  func takeDiskReading(then done: @escaping () -> Void) {
    daemon.senses.imageDisk.takeReading(then: done)
  }

  func prioritize(_ id: WorkerID) { daemon.hibernation.prioritize(id.name) }

  func register(_ wrapper: WrapperReport?, from client: ClientID) -> String? {
    daemon.wrappers.register(wrapper, from: client)
  }

  func hasLeft(_ client: ClientID) { daemon.wrappers.hasLeft(client) }
}

extension LifecyclePolicy {
  /// Of the whole daemon; a worker's own policy may differ.
  fileprivate var permittedHibernation: CodedText {
    if !hibernate.enabled {
      return CodedText("disabled", "the policy hibernates no worker (hibernate.enabled: false)")
    }
    if mode == .shadow {
      return CodedText("shadow_mode", "shadow mode: decisions are logged, not applied")
    }
    return CodedText("enabled", "the policy hibernates workers")
  }
}
