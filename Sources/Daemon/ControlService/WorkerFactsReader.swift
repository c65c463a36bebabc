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
    let imageLength = worker.image?.length ?? imageDisk.trimImage(of: worker)
    return WorkerFacts(
      worker: worker, imageLength: imageLength,
      baseSize: imageLength == nil ? imageDisk.base(of: id.name) : 0,
      bytesInTrimImage: Int64(clamping: worker.bytesInTrimImage),
      unwatched: worker.wakeWatch?.unwatched ?? [],
      history: restarts.histories[id] ?? RunHistory(), awaited: starter.awaited(by: id))
  }

  /// Adds to a report what it shows as it is; nothing if there are no facts about the worker.
  func describe(_ id: WorkerID, in report: inout WorkerReport) {
    guard let worker = workers[id] else { return }
    let configuration = worker.configuration
    report.command = worker.launched?.command ?? configuration.command
    report.groups = configuration.groups.isEmpty ? nil : configuration.groups
    let changed = worker.keysChangedSinceLaunch
    report.changedSinceLaunch = changed.isEmpty ? nil : changed
    report.reloadSignal = configuration.reloadSignal.map(Signals.text)
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
