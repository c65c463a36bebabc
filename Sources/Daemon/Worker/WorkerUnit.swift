import Hibernation
import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision

/// What the daemon keeps for one worker, in addition to the state in the engine. What belongs to
/// one run of its program is in `run`. The members of `run` can be used as if they were members of
/// this class.
@dynamicMemberLookup
final class WorkerUnit {
  let id: WorkerID
  @CopyOnWriteBox var configuration: WorkerConfiguration
  /// The complete environment: that of the daemon or of the client, with the variables of the
  /// configuration.
  var environment: [String: String]
  /// The configuration file declares the worker. If false, `run` has created it.
  var isDeclared: Bool
  private(set) var run = WorkerRun()
  /// The worker was adopted from another supervisor, which still supervises it; see
  /// `ExternalAdoption`.
  var external: ExternalWorker?

  /// The bytes that were written to the worker's images since the start of the daemon.
  private(set) var imageBytesWritten: Int64 = 0

  /// The descriptors that the worker has stored in the daemon; nil: none yet.
  var stored: DescriptorStoring?
  /// An operation on the worker (a freeze, hibernation or resume) is running on another thread. The
  /// worker's exit is handled after it.
  var isBusy: Bool { run.sleep?.isBusy ?? false }
  /// The image, while the worker is hibernated.
  var image: ImageOnDisk? { run.sleep?.resumeMethod.image }
  /// The memory that a lazy restore hasn't restored yet, or that is in the image of a trim.
  var missing: MissingBytes? { run.sleep?.missing }
  /// Whether memory may be in the image of a trim.
  var mayHaveTrimImage: Bool { missing?.isTrimmed == true }
  /// The number of bytes that are in the image of a trim only.
  var bytesInTrimImage: UInt64 { missing.map { $0.isTrimmed ? $0.bytes : 0 } ?? 0 }
  /// Waits until the images of an earlier run have been removed. Not for the loop's thread.
  var imageRemoval: (@Sendable () -> Void)?

  /// A base of the worker's image stays on the disk while the worker runs.
  var keepsBase: Bool {
    let rules = configuration.policy.hibernate
    return rules.enabled && rules.overlay && !rules.encrypt
  }

  init(
    configuration: WorkerConfiguration, environment: [String: String], isDeclared: Bool
  ) {
    id = WorkerID(configuration.name)
    _configuration = CopyOnWriteBox(wrappedValue: configuration)
    self.environment = environment
    self.isDeclared = isDeclared
  }

  subscript<Value>(dynamicMember path: ReferenceWritableKeyPath<WorkerRun, Value>) -> Value {
    get { run[keyPath: path] }
    _modify { yield &run[keyPath: path] }
  }

  /// The root process has ended. No operation begins any more: `exited` follows, and completes all
  /// of them.
  var hasExited: Bool { run.ending?.hasExited ?? false }
  /// SIGKILL has been sent to all processes of the worker.
  var isKilled: Bool { run.ending?.isKilled ?? false }
  /// The root process has been reaped. Its pid may be that of another process by now.
  var isReaped: Bool { run.ending?.isReaped ?? false }

  /// A probe is running, or the worker hasn't closed the probe's connection yet.
  var isAsked: Bool { !run.questions.isEmpty }

  /// The next sample of the worker's traffic includes the daemon's own request, so it isn't
  /// counted.
  var isDrainingTraffic: Bool { run.questions.contains(where: \.isDrainingTraffic) }

  /// Records the current configuration as that of the launch.
  func recordLaunch() { run.launchedWith = $configuration }

  /// Ends the run. This is the only way in which a run ends: the watches and timers on the loop are
  /// removed, open requests are answered, and then the run is replaced by a new one.
  func endRun(_ watches: any DescriptorWatches) {
    if let process = run.process, let token = run.exitWatch {
      watches.unwatch(process.pidfd, token)
      run.exitWatch = nil
    }
    run.conversation?.end()
    run.wakeWatch?.end()
    run.shed?.end()
    run.sleep?.end()
    run.ending?.end()
    run.liveness?.end()
    run.readiness?.end()
    run = WorkerRun()
  }

  func recordImageWritten(_ bytes: Int64) { imageBytesWritten &+= bytes }

  /// The event that the worker has opened or closed a channel for requests, or has answered for the
  /// first time.
  var channelsChanged: Event {
    let profile = profile
    return .channelsChanged(id, canShed: profile.canShed, canAnswer: profile.canAnswer)
  }

  var profile: WorkerProfile {
    var profile = WorkerProfile(
      policy: configuration.policy, importance: configuration.importance,
      canShed: configuration.shed != nil || run.conversation?.canShed == true,
      canAnswer: run.conversation?.canAnswer == true,
      announcesReadiness: configuration.readiness != nil)
    profile.mayBeTerminated = external?.mayBeTerminated ?? true
    profile.rule = external?.rule
    profile.footprintLimits = configuration.limits.footprint
    profile.wakeWith = configuration.wakeWith.map { WorkerID($0) }
    return profile
  }

  /// The paths of the sockets between the worker and the daemon.
  var daemonSockets: Set<String> { run.conversation?.paths ?? [] }

  /// The ports at which a connection alone doesn't wake the worker.
  var answeredPorts: Set<UInt16> { Set(configuration.healthChecksWhileAsleep.map(\.port)) }

  /// The ports that only health checks use. Connections there don't count as activity while the
  /// worker runs.
  var healthPorts: Set<UInt16> {
    Set(configuration.healthChecksWhileAsleep.filter { $0.path != nil }.map(\.port))
  }

  /// The keys of the worker's configuration that a reload has changed and that apply at its next
  /// launch.
  var keysChangedSinceLaunch: [String] {
    guard let launched = run.launched else { return [] }
    return configuration.changes(from: launched).filter(\.atLaunch).map(\.key)
  }

  /// Describes the worker for the hibernator and the freezer, which run on other threads. The
  /// memory files are those that were opened when the worker became ready or was last suspended.
  func target() -> HibernationTarget? {
    guard let process = run.process else { return nil }
    return HibernationTarget(
      name: id.name, root: process.identity, session: process.session, cgroup: process.cgroup,
      memories: process.memories, waits: run.waits, masters: run.masters, sleepers: run.sleepers)
  }
}

/// One worker, for the components of its run: its id, its state in the engine, and the log. It
/// doesn't keep the worker alive.
struct WorkerHandle {
  let id: WorkerID
  let driver: EngineDriver
  private let daemonLog: DaemonLog
  private(set) weak var worker: WorkerUnit?

  init(worker: WorkerUnit, driver: EngineDriver, log: DaemonLog) {
    self.worker = worker
    id = worker.id
    self.driver = driver
    daemonLog = log
  }

  /// The worker's state; nil: the engine doesn't know it.
  var state: WorkerState? { driver.state.state(of: id) }

  func send(_ event: Event) { driver.send(event) }

  func log(_ priority: DaemonLog.Priority, _ text: String) {
    daemonLog(priority, "\(id): \(text)")
  }
}

/// The workers of the daemon, by name. Belongs to the loop's thread.
final class WorkerRegistry {
  private var workers: [WorkerID: WorkerUnit] = [:]
  /// The workers whose launch was begun and has no outcome yet; see `WorkerLauncher`.
  var launching: Set<WorkerID> = []
  /// The workers of `run` that have ended, the latest last.
  private var endedRuns: [WorkerID] = []
  /// At most this many of them are still shown, since a script may use `run` with new names for
  /// years.
  var maxEndedRuns = 100

  /// Records the end of a worker of `run`, and returns the one that isn't to be shown any more.
  func recordEndedRun(_ id: WorkerID) -> WorkerID? {
    endedRuns.removeAll { $0 == id }
    endedRuns.append(id)
    return endedRuns.count > maxEndedRuns ? endedRuns.removeFirst() : nil
  }

  /// Setting nil removes the worker.
  subscript(id: WorkerID) -> WorkerUnit? {
    get { workers[id] }
    set { workers[id] = newValue }
  }

  /// The workers, in no order.
  var values: some Collection<WorkerUnit> { workers.values }
  var keys: some Collection<WorkerID> { workers.keys }
  var count: Int { workers.count }

  func removeAll() { workers.removeAll() }
}
