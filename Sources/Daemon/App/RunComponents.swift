import Hibernation
import Lifecycle

/// The components for each run of a worker: its launch, processes, sleep and end. Workers that
/// another supervisor starts are included.
struct RunComponents {
  let launcher: WorkerLauncher
  let processes: ProcessHolder
  let sleeps: WorkerSleeps
  let ends: WorkerEnds
  /// Adopts workers of other supervisors by request.
  let externals: ExternalAdoption
  /// Adopts workers of other supervisors by rule.
  let rules: RuleAdoption

  init(_ shared: SharedComponents, _ components: WorkerComponents) {
    let (services, driver, workers) = (shared.services, shared.driver, shared.workers)
    let (loop, log) = (services.loop, services.log)
    let (requests, restarts, role) = (shared.requests, shared.restarts, shared.role)
    weak var adoption: ExternalAdoption?
    let memory = KernelMemory(
      services: services, state: shared.state, bootID: shared.bootID,
      standby: .pager(
        jobs: services.jobs, loop: loop, hibernation: services.hibernation, log: log,
        hasSuccessors: role.hasSuccessor, lock: shared.state.lockPath),
      resumeOverride: role.resumeOverride)
    ends = WorkerEnds(
      loop: loop,
      processes: KernelWorkerProcesses(
        services: services, state: shared.state, scanner: components.senses.scanner),
      memory: memory, records: services.records, log: log, driver: driver, workers: workers,
      requests: requests, kernelKills: components.senses.kernelKills,
      imageDisk: components.senses.imageDisk, snapshots: shared.snapshots,
      launchPlanner: components.launchPlanner, restarts: restarts,
      listening: components.listening, supervision: components.supervision, program: role.program,
      keepLastLines: { [days = shared.chronicle.days] in days.keep(lastLines: $1, of: $0) },
      externalRootDidEnd: { adoption?.externalRootDidEnd($0) })
    sleeps = WorkerSleeps(
      driver: driver, workers: workers, timers: loop, watches: loop, memory: memory,
      imageDisk: components.senses.imageDisk, log: log, kill: { [ends] in ends.kill($0) })
    processes = ProcessHolder(
      loop: loop, jobs: services.jobs, processes: services.processes,
      probes: components.senses.probes, sleeps: sleeps, ends: ends)
    let launches = WorkerLaunches(
      services: services, recordWriter: shared.recordWriter,
      conversations: components.conversations, processes: processes, ends: ends)
    launcher = WorkerLauncher(driver: driver, workers: workers, timers: loop) { id in
      workers[id].map { WorkerLaunch($0, launches) }
    }
    externals = ExternalAdoption(
      ends: ends, holder: processes, declared: components.declared,
      configuration: shared.configuration, recordWriter: shared.recordWriter)
    rules = RuleAdoption(
      externals: externals,
      released: ReleasedProcesses(
        path: shared.state.path + "/released", bootID: shared.bootID, files: services.stateFiles),
      processes: services.processes)
    adoption = externals
  }
}
