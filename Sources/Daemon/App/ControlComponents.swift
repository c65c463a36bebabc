extension ControlService {
  /// Makes the components that answer the control socket's requests.
  init(
    _ shared: SharedComponents, _ components: WorkerComponents, runs: RunComponents,
    ending: DaemonEnd, reloader: ConfigurationReloader, hooks: HookRunner
  ) {
    let (services, driver, role) = (shared.services, shared.driver, shared.role)
    let (loop, senses) = (services.loop, components.senses)
    let reporter = DaemonReporter(
      driver: driver, version: shared.version, state: shared.state,
      configuration: shared.configuration, chronicle: shared.chronicle, pressure: shared.pressure,
      imageDisk: senses.imageDisk, cgroups: shared.cgroups, hooks: hooks)
    let facts = WorkerFactsReader(
      clock: loop, workers: shared.workers, state: shared.state, planner: components.launchPlanner,
      chronicle: shared.chronicle, imageDisk: senses.imageDisk, restarts: shared.restarts,
      starter: shared.starter, schedules: components.schedules, program: role.program)
    let status = StatusReporter(
      facts: facts, daemon: reporter, wrappers: components.wrappers, scanner: senses.scanner,
      snapshots: shared.snapshots)
    let startConfirmation = StartConfirmation(
      requests: shared.requests, restarts: shared.restarts, scanner: senses.scanner)
    let examination = CoalescedProbe<ExaminationProgram.Outcome>(
      services.jobs, about: "doctor", within: .seconds(40)
    ) { [state = shared.state.path, socket = shared.socket] in
      // Made when it is needed: it has a copy of the environment.
      { ExaminationProgram(stateDirectory: state, socket: socket).run() }
    }
    self.init(
      following: EventFollowing(shared.chronicle) { [unowned server = shared.control] in
        server.unreadBytes(of: $0)
      } send: { [unowned server = shared.control] in
        server.send($0, to: $1)
      }, status: status, resumeOverride: role.resumeOverride,
      jetsam: shared.jetsam, loopReturn: services.loopReturn,
      workers: WorkerVerbs(
        externals: runs.externals, startConfirmation: startConfirmation,
        memory: runs.sleeps.memory),
      externals: runs.externals, reloads: components.reloads,
      ending: ending, reloader: reloader, examination: examination, jobs: services.jobs)
  }
}
