import Control
import Glibc
import Lifecycle
import Policy

/// Collects what the daemon, and not the engine, knows about a worker. It belongs to the event
/// loop's thread.
struct WorkerFactsReader {
  let clock: any Timers
  let workers: WorkerRegistry
  let state: StateDirectory
  let planner: LaunchPlanner
  let chronicle: Chronicle
  let imageDisk: ImageDiskMonitor
  let restarts: RestartSupervisor
  let starter: DependencyStarter
  let schedules: ScheduleMonitor
  /// The program of a wrapper; nil if the configuration declares the workers.
  let program: (any CallersProgram)?

  /// The facts about a worker; nil if there is no such worker or it belongs to a wrapper.
  func read(_ id: WorkerID) -> WorkerFacts? {
    guard let worker = workers[id] else { return nil }
    let configuration = worker.configuration
    var facts = WorkerFacts(policy: worker.profile.policy)
    facts.command = worker.launched?.command ?? configuration.command
    facts.groups = configuration.groups
    facts.isAdopted = worker.external != nil
    facts.isDeclared = worker.isDeclared
    facts.rule = worker.external?.rule
    facts.hasChosenPolicy = worker.external?.chosen != nil
    facts.changedSinceLaunch = worker.keysChangedSinceLaunch
    facts.reloadSignal = configuration.reloadSignal
    facts.healthChecks = configuration.healthChecksWhileAsleep
    if worker.external == nil {
      facts.log = program.map(\.logPath) ?? planner.logPath(of: worker)
      facts.logUser = planner.logUser(of: worker)
      facts.logTimes = program == nil ? state.logTimes(of: id.name) : nil
    }
    facts.wrapper = program.map {
      WrapperFacts(pid: getpid(), wakes: $0.wakes, host: $0.host, directory: $0.directory)
    }
    facts.says = worker.conversation?.statusText
    facts.connections = worker.conversation?.connectionCount
    facts.talk = worker.conversation?.withoutEffect
    facts.imageLength = worker.image?.length ?? imageDisk.trimImage(of: worker)
    facts.bytesInTrimImage = Int64(clamping: worker.bytesInTrimImage)
    facts.baseSize = facts.imageLength == nil ? imageDisk.base(of: id.name) : 0
    facts.lastHibernation = worker.lastHibernation
    facts.restoreMode = worker.sleep?.restoreMode
    facts.stoppedWork = worker.wakeWatch?.stoppedWork
    facts.unwatched = worker.wakeWatch?.unwatched ?? []
    facts.plans = plans(of: worker)
    (facts.process, facts.signOfUse) = (worker.process, worker.sample.sign)
    (facts.source, facts.ports) = (worker.sample.source, worker.sample.ports)
    facts.measured = worker.measuring.last.map { ($0.reclaimable, $0.sharedByFork, $0.at) }
    return facts
  }

  /// How often a worker is used; nil if the daemon hasn't seen the worker yet. It is computed only
  /// if a report shows it.
  func activity(of id: WorkerID) -> ActivityReport? {
    guard let worker = workers[id], let uses = chronicle.uses.uses(of: id) else { return nil }
    return ActivityReport(
      uses, policy: worker.profile.policy, launchedAt: restarts.launchedAt(of: id),
      sign: worker.sample.sign, source: worker.sample.source,
      isServer: !worker.sample.ports.isEmpty, at: clock.now)
  }

  private func plans(of worker: WorkerUnit) -> WorkerPlans {
    let id = worker.id
    let awaited = starter.awaited(by: id)
    return WorkerPlans(
      exits: restarts.exits(of: id) ?? [], restarts: restarts.restarts(of: id),
      restart: restarts.plan(of: id), awaited: awaited?.text,
      awaitedWorkers: awaited?.workers ?? [], problem: restarts.problem(of: id),
      hasGivenUp: restarts.hasGivenUp(id),
      livenessFailure: worker.liveness?.lastFailure,
      nextWake: schedules.next(worker.configuration.wakeAt, after: Int64(time(nil))),
      answeredAsleep: worker.wakeWatch?.answeredCount)
  }
}
