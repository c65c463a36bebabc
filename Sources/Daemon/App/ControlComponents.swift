import Linux

/// The components that answer the control socket's requests.
struct ControlComponents {
  let status: StatusReporter
  private let shared: SharedComponents
  private let components: WorkerComponents
  private let explanations: ExplanationVerbs
  private let workers: WorkerVerbs
  private let undeclared: UndeclaredWorkers
  private let externals: ExternalAdoption
  private let daemon: DaemonVerbs

  init(
    _ shared: SharedComponents, _ components: WorkerComponents, runs: RunComponents,
    ending: DaemonEnd, reloader: ConfigurationReloader, hooks: HookRunner
  ) {
    self.shared = shared
    self.components = components
    let (services, driver, role) = (shared.services, shared.driver, shared.role)
    let (loop, senses) = (services.loop, components.senses)
    externals = runs.externals
    let reporter = DaemonReporter(
      driver: driver, version: shared.version, state: shared.state,
      configuration: shared.configuration, chronicle: shared.chronicle, pressure: shared.pressure,
      imageDisk: senses.imageDisk, cgroups: shared.cgroups, hooks: hooks)
    let facts = WorkerFactsReader(
      clock: loop, workers: shared.workers, state: shared.state, planner: components.launchPlanner,
      chronicle: shared.chronicle, imageDisk: senses.imageDisk, restarts: shared.restarts,
      starter: shared.starter, schedules: components.schedules, program: role.program)
    status = StatusReporter(
      clock: loop, driver: driver, workers: shared.workers, facts: facts, daemon: reporter,
      wrappers: components.wrappers, chronicle: shared.chronicle, scanner: senses.scanner,
      snapshots: shared.snapshots)
    explanations = ExplanationVerbs(
      clock: loop, driver: driver, wrappers: components.wrappers,
      configuration: shared.configuration, facts: facts, status: status,
      resumeOverride: role.resumeOverride)
    let startConfirmation = StartConfirmation(
      requests: shared.requests, restarts: shared.restarts, scanner: senses.scanner)
    workers = WorkerVerbs(
      ending: ending, requests: shared.requests, startConfirmation: startConfirmation,
      supervision: components.supervision, externals: externals,
      memory: runs.sleeps.memory, imageDisk: senses.imageDisk)
    undeclared = UndeclaredWorkers(
      driver: driver, workers: shared.workers, ending: ending, requests: shared.requests,
      restarts: shared.restarts, startConfirmation: startConfirmation,
      supervision: components.supervision,
      wrappers: components.wrappers, learnedMemory: shared.learnedMemory, jobs: services.jobs,
      logs: shared.state.logs)
    daemon = DaemonVerbs(
      clock: loop, driver: driver, ending: ending, reloader: reloader, rules: runs.rules,
      examination: SelfExamination(services.jobs) {
        [state = shared.state.path, socket = shared.socket] in
        // Made when it is needed: it has a copy of the environment.
        ExaminationProgram(stateDirectory: state, socket: socket).run()
      },
      reporter: reporter, jobs: services.jobs, log: services.log)
  }

  /// Opens the control socket. Clients are accepted from now on.
  func openSocket() throws(StartError) {
    try shared.control.open(makeService())
  }

  private func makeService() -> ControlService {
    ControlService(
      clock: shared.services.loop,
      following: EventFollowing(shared.chronicle) { [unowned server = shared.control] in
        server.unreadBytes(of: $0)
      } send: { [unowned server = shared.control] in
        server.send($0, to: $1)
      }, status: status, explanations: explanations,
      history: HistoryVerbs(
        clock: shared.services.loop, driver: shared.driver, chronicle: shared.chronicle,
        jetsam: shared.jetsam, loopReturn: shared.services.loopReturn),
      workers: workers, undeclared: undeclared, externals: externals,
      reloads: components.reloads, wrappers: components.wrappers, daemon: daemon)
  }
}
