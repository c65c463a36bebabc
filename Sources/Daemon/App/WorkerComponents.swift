import Lifecycle
import Linux

/// The components that serve all workers: sampling, conversations, listening sockets, and
/// supervision. Each one is made after those that it needs.
struct WorkerComponents {
  let declared: DeclaredWorkers
  let supervision: WorkerSupervision
  let schedules: ScheduleMonitor
  let senses: Senses
  let listening: ListeningSockets
  let launchPlanner: LaunchPlanner
  let conversations: WorkerConversations
  let reloads: WorkerReloads
  let wrappers: RegisteredWrappers

  init(_ shared: SharedComponents) {
    let (services, driver, workers) = (shared.services, shared.driver, shared.workers)
    let (loop, log) = (services.loop, services.log)
    let (phase, returning) = (shared.phase, shared.returning)
    let (restarts, starter, role) = (shared.restarts, shared.starter, shared.role)
    wrappers = RegisteredWrappers(
      driver: driver, workers: workers, clock: loop,
      host: WrapperSockets(services: services, control: shared.control))
    declared = DeclaredWorkers(
      driver: driver, workers: workers, returning: returning, phase: phase,
      environment: shared.environment, restarts: restarts, starter: starter,
      learnedMemory: shared.learnedMemory, wrappers: wrappers, log: log)
    reloads = WorkerReloads(
      requests: shared.requests, wrappers: wrappers, restarts: restarts,
      hibernation: services.hibernation)
    senses = Senses(
      services: services, driver: driver, workers: workers, role: role, state: shared.state,
      jetsam: shared.jetsam, learnedMemory: shared.learnedMemory, restarts: restarts,
      pressure: shared.pressure,
      logs: LogKeeper(services) { [state = shared.state] in state.logTimes(of: $0.name) })
    shared.recordWriter.follow(senses.imageDisk, of: workers, driver)
    listening = ListeningSockets(
      watches: loop, timers: loop, jobs: services.jobs, files: services.socketFiles,
      declared: declared)
    supervision = WorkerSupervision(
      workers: workers, restarts: restarts, starter: starter, reloads: reloads,
      liveness: senses.liveness, listening: listening)
    schedules = ScheduleMonitor(
      services: services, state: shared.state, driver: driver, workers: workers,
      returning: returning)
    conversations = WorkerConversations(
      services: services, timers: services.loop, watches: services.loop, driver: driver,
      workers: workers, reloads: reloads, snapshots: shared.snapshots,
      recordWriter: shared.recordWriter)
    let leftovers = Leftovers(
      records: services.records.store, logs: shared.state.logs,
      groups: [shared.cgroups, shared.earlierCgroups].compactMap(\.self),
      processes: services.processes)
    launchPlanner = LaunchPlanner(
      cgroups: shared.cgroups, limitsObstacle: shared.limitsObstacle,
      leftovers: role.program == nil ? leftovers : nil, logs: shared.state.logs,
      socket: shared.socket, inheritance: role.program?.inheritance, restarts: restarts,
      services: services)
  }
}
