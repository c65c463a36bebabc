import Control
import Glibc
import Lifecycle
import Policy
import Supervision

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
    var facts = WorkerFacts(policy: worker.profile.policy)
    facts.isAdopted = worker.external != nil
    facts.isDeclared = worker.isDeclared
    facts.rule = worker.external?.rule
    facts.hasChosenPolicy = worker.external?.chosen != nil
    facts.healthChecks = worker.configuration.healthChecksWhileAsleep
    facts.imageLength = worker.image?.length ?? imageDisk.trimImage(of: worker)
    facts.bytesInTrimImage = Int64(clamping: worker.bytesInTrimImage)
    facts.baseSize = facts.imageLength == nil ? imageDisk.base(of: id.name) : 0
    facts.lastHibernation = worker.lastHibernation
    facts.stoppedWork = worker.wakeWatch?.stoppedWork
    facts.unwatched = worker.wakeWatch?.unwatched ?? []
    facts.history = restarts.histories[id] ?? RunHistory()
    facts.awaited = starter.awaited(by: id)
    (facts.process, facts.signOfUse) = (worker.process, worker.sample.sign)
    (facts.source, facts.ports) = (worker.sample.source, worker.sample.ports)
    facts.measured = worker.measuring.last.map { ($0.reclaimable, $0.sharedByFork, $0.at) }
    return facts
  }

  /// Adds to a report what it shows as it is; nothing if there are no facts about the worker.
  func describe(_ id: WorkerID, in report: inout WorkerReport) {
    guard let worker = workers[id] else { return }
    let configuration = worker.configuration
    report.command = worker.launched?.command ?? configuration.command
    report.groups = configuration.groups.isEmpty ? nil : configuration.groups
    let changed = worker.keysChangedSinceLaunch
    report.changedSinceLaunch = changed.isEmpty ? nil : changed
    report.reloadSignal = configuration.reloadSignal.map(SignalName.text)
    if worker.external == nil {
      report.log = program.map(\.logPath) ?? planner.logPath(of: worker)
      report.logUser = planner.logUser(of: worker)
      report.logTimes = program == nil ? state.logTimes(of: id.name) : nil
    }
    if let program {
      report.wrapper = getpid()
      report.wakes = program.wakes
      (report.host, report.directory) = (program.host, program.directory)
    }
    report.says = worker.conversation?.statusText
    report.connections = worker.conversation?.connectionCount
    report.talk = worker.conversation?.withoutEffect.map { CodedText("without_effect", $0) }
    report.resume = worker.sleep?.restoreMode
    report.livenessFailure = worker.liveness?.lastFailure.map { CodedText("probe_failed", $0) }
    report.nextWake = schedules.next(configuration.wakeAt, after: Int64(time(nil)))
    report.answeredAsleep = worker.wakeWatch?.answeredCount
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
}
