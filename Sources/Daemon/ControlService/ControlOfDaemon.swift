import Control
import Glibc
import Lifecycle
import Linux
import Policy
import PolicyFile

// What `ControlService` and its reports get of the daemon.

extension Daemon: ReportSource {
  func facts(of id: WorkerID) -> WorkerFacts? {
    guard let runtime = workers[id] else { return nil }
    let configuration = runtime.configuration
    var facts = WorkerFacts(policy: runtime.profile.policy)
    facts.command = runtime.launched?.command ?? configuration.command
    facts.isDeclared = runtime.isDeclared
    facts.isAdopted = runtime.external != nil
    facts.changedSinceLaunch = runtime.keysChangedSinceLaunch
    facts.reloadSignal = configuration.reloadSignal
    if runtime.external == nil {
      facts.log = wrapped == nil ? launchPlanner.logPath(of: runtime) : wrapped?.settings.log
    }
    facts.wrapper = wrapped.map { (getpid(), $0.wakes) }
    facts.says = runtime.conversation?.statusText
    facts.connections = runtime.conversation?.connectionCount
    facts.talk = runtime.conversation?.withoutEffect
    facts.imageLength = runtime.image?.length
    facts.baseSize = runtime.image == nil ? senses.imageDisk.base(of: id.name) : 0
    facts.lastHibernation = runtime.lastHibernation
    facts.restoreMode = runtime.sleep?.restoreMode
    facts.unwatched = runtime.unwatched
    facts.plans = plans(of: runtime)
    facts.process = runtime.process
    facts.measured = runtime.measuring.last.map { ($0.reclaimable, $0.at) }
    return facts
  }

  private func plans(of runtime: WorkerRuntime) -> WorkerPlans {
    let id = runtime.id
    return WorkerPlans(
      exits: restarts.exits(of: id) ?? [], restarts: restarts.restarts(of: id),
      restart: restarts.plan(of: id), awaited: dependencyStarter.awaited(by: id),
      problem: restarts.problem(of: id), livenessFailure: runtime.liveness?.lastFailure,
      nextWake: schedules.next(runtime.configuration.wakeAt, after: Int64(time(nil))),
      answeredAsleep: runtime.answering?.count)
  }

  func daemonFacts() -> DaemonFacts {
    DaemonFacts(
      version: settings.version, freezer: freezer, stateDirectory: state.path,
      imageCosts: senses.imageDisk.costs)
  }

  func policyFacts() -> PolicyFacts {
    PolicyFacts(
      origins: settings.configuration.origins, resumeOverride: resumeChoice.override,
      isWrapper: wrapped != nil)
  }

  func leads(_ id: WorkerID) -> Bool { wrappers.leads(id) }

  func wrappedReport(of name: String, at now: Instant) -> WorkerReport? {
    wrappers.entry(of: name)?.current(at: now)
  }

  func wrappedReports(at now: Instant) -> [WorkerReport] { wrappers.reports(at: now) }

  func withRecentScan(then: @escaping (ProcessScan?) -> Void) {
    senses.scanner.withRecentScan(of: workers.values, then: then)
  }

  func scanProcesses(then: @escaping (ProcessScan?) -> Void) {
    senses.scanner.scanProcesses(then: then)
  }

  func loadSnapshot(of name: String, then: @escaping (SnapshotStore.Snapshot?) -> Void) {
    snapshots.load(name, then: loopReturn.callback(then))
  }

  var jetsamIDs: [String] { jetsam.ids }

  func loadJetsam(_ id: String, then: @escaping (JetsamRecord?) -> Void) {
    jetsam.load(id, then: then)
  }

  func saveJournal(then: @escaping (JournalPlace) -> Void) {
    var place: JournalPlace?
    let saved: @Sendable (Bool) -> Void = loopReturn.callback { _ in
      if let place { then(place) }
    }
    place = chronicle.save(at: now) { saved(true) }
  }
}

extension Daemon: ControlHost {
  /// Lets clients in.
  func openControlSocket() throws(StartError) {
    let server = try ControlServer(path: settings.socket, loop, log)
    let service = ControlService(
      driver, self, EventFollowing(chronicle, server), statusReporter, log)
    try server.connect(service)
    (self.server, control) = (server, service)
  }

  func start(_ id: WorkerID, _ verb: Request.Verb, then answer: @escaping (Answer) -> Void) {
    dependencyStarter.start(id, verb) { [unowned self] in
      firstMoments.watch(id, $0, then: answer)
    }
  }

  func launch(
    _ configuration: WorkerConfiguration, environment: [String: String],
    then answer: @escaping (Answer) -> Void
  ) {
    let runtime = WorkerRuntime(
      configuration: configuration, environment: environment, isDeclared: false)
    let id = runtime.id
    restarts.add(id, exits: learnedMemory.rememberedExits(of: id))
    workers[id] = runtime
    driver.send(.added(id, runtime.profile))
    request(.start, id) { [unowned self] in firstMoments.watch(id, $0, then: answer) }
  }

  func reload(allowEmpty: Bool, then report: @escaping (ReloadOutcome) -> Void) {
    reloader.reload(allowEmpty: allowEmpty, then: report)
  }

  func previewReload(allowEmpty: Bool, then report: @escaping (ReloadOutcome) -> Void) {
    reloader.preview(allowEmpty: allowEmpty, then: report)
  }

  func takeDiskReading(then done: @escaping () -> Void) { senses.imageDisk.takeReading(then: done) }

  func prioritize(_ id: WorkerID) { hibernation.prioritize(id.name) }

  func register(_ wrapper: WrapperReport?, from client: ClientID) -> String? {
    let refusal = wrappers.take(wrapper, from: client, at: now)
    if refusal == nil { follow(client) }
    return refusal
  }

  func hasLeft(_ client: ClientID) { unfollow(client) }
}
