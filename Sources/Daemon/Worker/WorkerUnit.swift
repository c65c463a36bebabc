import Hibernation
import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision

/// What the daemon holds of one worker beside what the engine knows. What belongs to one run of its
/// program is in `run`, whose members can be used as if they were its own.
@dynamicMemberLookup
final class WorkerUnit {
  let id: WorkerID
  @SharedUntilChanged var configuration: WorkerConfiguration
  /// All of it: what the configuration adds is laid over the daemon's, or the client's, own.
  var environment: [String: String]
  /// In the configuration file; else made by `run`.
  var isDeclared: Bool
  private(set) var run = WorkerRun()
  /// Adopted from another supervisor, which still supervises it; see `ExternalAdoption`.
  var external: ExternalWorker?

  /// Bytes that were written to its images since the daemon's start.
  private(set) var imageBytesWritten: Int64 = 0

  /// What its runs have stored with us; nil: nothing yet.
  var stored: DescriptorStoring?
  /// A freeze, hibernation or resume runs on another thread; an exit is looked at after it.
  var isBusy: Bool { run.sleep?.isBusy ?? false }
  /// While it is hibernated.
  var image: ImageOnDisk? { run.sleep?.rest.image }
  /// How much of its memory is still to come.
  var missing: MissingBytes? { run.sleep?.missing }
  /// Waits until the images of an earlier run are removed; not for the loop's thread.
  var imageRemoval: (@Sendable () -> Void)?

  /// Something of its image stays on disk while it runs.
  var keepsBase: Bool {
    let rules = configuration.policy.hibernate
    return rules.enabled && rules.overlay && !rules.encrypt
  }

  init(
    configuration: WorkerConfiguration, environment: [String: String], isDeclared: Bool
  ) {
    id = WorkerID(configuration.name)
    _configuration = SharedUntilChanged(wrappedValue: configuration)
    self.environment = environment
    self.isDeclared = isDeclared
  }

  subscript<Value>(dynamicMember path: ReferenceWritableKeyPath<WorkerRun, Value>) -> Value {
    get { run[keyPath: path] }
    _modify { yield &run[keyPath: path] }
  }

  var hasExited: Bool { run.hasExited }
  var isKilled: Bool { run.isKilled }
  var isReaped: Bool { run.isReaped }

  /// A probe is under way, or the worker hasn't closed its connection yet.
  var isAsked: Bool { run.liveness?.isAsking == true || run.shedOverHTTP?.isAsking == true }

  /// A look at its traffic takes what came with our question, and it isn't counted.
  var isSettling: Bool { run.liveness?.isSettling == true || run.shedOverHTTP?.isSettling == true }

  /// Its program is launched with the configuration as it is now.
  func noteLaunch() { run.launchedWith = $configuration }

  /// The one place where a run ends: its watches and timers on the loop are removed, open requests are answered, and
  /// then the run is replaced by a new one, so that nothing of it reaches the next.
  func endRun(_ watches: any DescriptorWatches) {
    if let process = run.process, let token = run.exitWatch {
      watches.unwatch(process.pidfd, token)
      run.exitWatch = nil
    }
    run.conversation?.end()
    run.wakeWatch?.end()
    run.shed?.end()
    run.sleep?.end()
    run.stopCommand?.cancel()
    run.ending?.end()
    run.liveness?.end()
    run.readiness?.end()
    let held = run.heldOfLoop
    assert(held.isEmpty, "\(id): not given back at the end of its run: \(held)")
    run = WorkerRun()
  }

  func noteImageWritten(_ bytes: Int64) { imageBytesWritten &+= bytes }

  /// It has opened or closed a channel on which it can be asked, or has answered for the first time.
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

  /// The sockets between the worker and the daemon.
  var ownChannels: Set<String> { run.conversation?.paths ?? [] }

  /// Ports at which a connection alone is no reason to wake it.
  var answeredPorts: Set<UInt16> { Set(configuration.healthChecksWhileAsleep.map(\.port)) }

  /// Ports that only health checks use: they aren't activity while it runs.
  var healthPorts: Set<UInt16> {
    Set(configuration.healthChecksWhileAsleep.filter { $0.path != nil }.map(\.port))
  }

  /// Keys of its configuration that were changed by a reload, and apply at its next launch.
  var keysChangedSinceLaunch: [String] {
    guard let launched = run.launched else { return [] }
    return configuration.changes(from: launched).filter(\.atLaunch).map(\.key)
  }

  /// For the hibernator and the freezer, on their own threads. The memories are those that were opened
  /// when it became ready, or was last suspended.
  func target() -> HibernationTarget? {
    guard let process = run.process else { return nil }
    return HibernationTarget(
      name: id.name, root: process.identity, session: process.session, cgroup: process.cgroup,
      memories: process.memories, waits: run.waits, masters: run.masters)
  }
}

/// The workers that the daemon has, by name. Belongs to the loop's thread.
final class WorkerRegistry: Sequence {
  private var workers: [WorkerID: WorkerUnit] = [:]
  /// From the directive to launch one until the outcome; see `WorkerLauncher`.
  var launching: Set<WorkerID> = []

  /// Setting `nil` removes it.
  subscript(id: WorkerID) -> WorkerUnit? {
    get { workers[id] }
    set { workers[id] = newValue }
  }

  /// In no order.
  var values: some Collection<WorkerUnit> { workers.values }
  var keys: some Collection<WorkerID> { workers.keys }
  var count: Int { workers.count }

  func removeAll() { workers.removeAll() }

  func makeIterator() -> some IteratorProtocol<(key: WorkerID, value: WorkerUnit)> {
    workers.makeIterator()
  }
}

/// One worker, for the adapters of its run: its id, what the engine knows of it, and the log. It doesn't keep the
/// worker alive.
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

  /// nil: the engine doesn't know it.
  var state: WorkerState? { driver.state.state(of: id) }

  func send(_ event: Event) { driver.send(event) }

  func log(_ priority: DaemonLog.Priority, _ text: String) {
    daemonLog(priority, "\(id): \(text)")
  }
}

/// A value behind one reference, which copies share until one of them is changed.
@propertyWrapper
struct SharedUntilChanged<Value> {
  private final class Box {
    var value: Value
    init(_ value: Value) { self.value = value }
  }

  private var box: Box

  init(wrappedValue: Value) { box = Box(wrappedValue) }

  var wrappedValue: Value {
    _read { yield box.value }
    _modify {
      if !isKnownUniquelyReferenced(&box) { box = Box(box.value) }
      yield &box.value
    }
  }

  /// What copies have to be made of, to share it.
  var projectedValue: Self { self }
}
