import Control
import Glibc
import Hibernation
import Lifecycle
import Policy
import PolicyFile
import Supervision

/// What the daemon, and not the engine, knows about a worker, for reports that decide by it.
struct WorkerFacts {
  let worker: WorkerUnit
  /// The bytes on disk: of its image, as its record has it, and of its base.
  var imageLength: Int64?
  var baseSize: Int64 = 0
  /// The bytes that are in the image of a trim only.
  var bytesInTrimImage: Int64 = 0
  /// What it waits for and can't be woken by.
  var unwatched: [String] = []
  /// Its earlier runs, and whether it is started again.
  var history = RunHistory()
  /// The workers that it waits for, as a clause and by name; nil if it waits for none.
  var awaited: (text: String, workers: [String])?

  /// The rule that adopted it; nil if none did.
  var rule: String? { worker.external?.rule }
}

/// The costs of a worker's last hibernation.
struct LastHibernation {
  var written: Int64
  var unchanged: Int64
  var seconds: Double
  var footprintBefore: ByteCount
}

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
    report.connections = worker.conversation?.talk?.connectionCount
    report.talk = worker.conversation?.talk?.withoutEffect.map { CodedText("without_effect", $0) }
    report.resume = worker.sleep?.restoreMode
    report.livenessFailure = worker.liveness?.lastFailure.map { CodedText("probe_failed", $0) }
    report.nextWake = schedules.next(configuration.wakeAt, after: Int64(time(nil)))
    report.answeredAsleep = worker.wakeWatch?.answeredCount
  }

  /// How often a worker is used; nil if the daemon hasn't seen the worker yet. It is computed only
  /// if a report shows it.
  func activity(of id: WorkerID) -> ActivityReport? {
    guard let worker = workers[id], let uses = chronicle.uses.history.uses(of: id)
    else { return nil }
    return ActivityReport(
      uses, policy: worker.profile.policy, launchedAt: restarts.launchedAt(of: id),
      sign: worker.sample.sign, source: worker.sample.source,
      isServer: !worker.sample.ports.isEmpty, at: clock.now)
  }
}

// What `ps` and `status` show about a worker's earlier runs and about the plans for it.
extension WorkerFacts {
  func describeRuns(in report: inout WorkerReport, at now: Instant) {
    if report.state == WorkerState.terminated.rawValue {
      report.reason = plan(at: now) ?? report.reason
      if report.reason.code == Self.waitsForWorker { report.waitsFor = awaited?.workers }
      if case .backingOff(let due, _) = history.plan {
        report.restartsInSeconds = max(0, (due - now).seconds)
      }
    }
    report.restarts = history.restarts > 0 ? history.restarts : nil
    let exits = history.exits.map {
      ExitReport(
        at: $0.at, why: CodedText($0), footprint: $0.footprint.bytes, lastWords: $0.lastWords)
    }
    report.exits = exits.isEmpty ? nil : exits
  }

  private static let waitsForWorker = "waits_for_worker"

  /// Why the worker is terminated, if that will change or was planned to change; else nil.
  func plan(at now: Instant) -> CodedText? {
    switch history.plan {
    case .backingOff(let due, let reason):
      let seconds = max(0, ((due - now).seconds).rounded(.up))
      return CodedText("backing_off", "restarts in \(Duration.seconds(seconds).text): \(reason)")
    case .waitingForMemory(let reason):
      return CodedText("waits_for_memory", "restarts when memory is available: \(reason)")
    case nil: break
    }
    if let awaited { return CodedText(Self.waitsForWorker, awaited.text) }
    return history.problem
  }
}
