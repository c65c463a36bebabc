import Control
import Glibc
import Lifecycle
import Linux
import Policy

/// Collects what the daemon knows of a worker and the engine doesn't. Belongs to the loop's thread.
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
  /// Of a wrapper; nil: the configuration declares the workers.
  let program: (any CallersProgram)?

  /// nil: there is no such worker, or it belongs to a wrapper.
  func read(_ id: WorkerID) -> WorkerFacts? {
    guard let runtime = workers[id] else { return nil }
    let configuration = runtime.configuration
    var facts = WorkerFacts(policy: runtime.profile.policy)
    facts.command = runtime.launched?.command ?? configuration.command
    facts.groups = configuration.groups
    facts.isAdopted = runtime.external != nil
    facts.isDeclared = runtime.isDeclared
    facts.rule = runtime.external?.rule
    facts.hasChosenPolicy = runtime.external?.chosen != nil
    facts.changedSinceLaunch = runtime.keysChangedSinceLaunch
    facts.reloadSignal = configuration.reloadSignal
    facts.healthChecks = configuration.healthChecksWhileAsleep
    if runtime.external == nil {
      facts.log = program.map(\.logPath) ?? planner.logPath(of: runtime)
      facts.logUser = planner.logUser(of: runtime)
      facts.logTimes = program == nil ? state.logTimes(of: id.name) : nil
    }
    facts.wrapper = program.map {
      WrapperFacts(pid: getpid(), wakes: $0.wakes, host: $0.host, directory: $0.directory)
    }
    facts.says = runtime.conversation?.statusText
    facts.connections = runtime.conversation?.connectionCount
    facts.talk = runtime.conversation?.withoutEffect
    facts.imageLength = runtime.image?.length
    facts.baseSize = runtime.image == nil ? imageDisk.base(of: id.name) : 0
    facts.lastHibernation = runtime.lastHibernation
    facts.restoreMode = runtime.sleep?.restoreMode
    facts.stoppedWork = runtime.wakeWatch?.stoppedWork
    facts.unwatched = runtime.wakeWatch?.unwatched ?? []
    facts.plans = plans(of: runtime)
    (facts.process, facts.signOfUse) = (runtime.process, runtime.sample.sign)
    (facts.source, facts.ports) = (runtime.sample.source, runtime.sample.ports)
    facts.measured = runtime.measuring.last.map { ($0.reclaimable, $0.sharedByFork, $0.at) }
    return facts
  }

  /// Counted only where a report shows it. nil: the daemon hasn't seen the worker yet.
  func activity(of id: WorkerID) -> ActivityReport? {
    guard let runtime = workers[id], let uses = chronicle.uses.uses(of: id) else { return nil }
    return ActivityReport(
      uses, policy: runtime.profile.policy, launchedAt: restarts.launchedAt(of: id),
      sign: runtime.sample.sign, source: runtime.sample.source,
      isServer: !runtime.sample.ports.isEmpty, at: clock.now)
  }

  private func plans(of runtime: WorkerUnit) -> WorkerPlans {
    let id = runtime.id
    let awaited = starter.awaited(by: id)
    return WorkerPlans(
      exits: restarts.exits(of: id) ?? [], restarts: restarts.restarts(of: id),
      restart: restarts.plan(of: id), awaited: awaited?.text,
      awaitedWorkers: awaited?.workers ?? [], problem: restarts.problem(of: id),
      hasGivenUp: restarts.hasGivenUp(id),
      livenessFailure: runtime.liveness?.lastFailure,
      nextWake: schedules.next(runtime.configuration.wakeAt, after: Int64(time(nil))),
      answeredAsleep: runtime.wakeWatch?.answeredCount)
  }
}
