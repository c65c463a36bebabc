import Hibernation
import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision

/// What the daemon holds of one worker beside what the engine knows. What belongs to one run of its
/// program is in `run`, whose members can be used as if they were its own.
@dynamicMemberLookup
final class WorkerRuntime {
  let id: WorkerID
  var configuration: WorkerConfiguration
  /// All of it: what the configuration adds is laid over the daemon's, or the client's, own.
  var environment: [String: String]
  /// In the configuration file; else made by `run`.
  var isDeclared: Bool
  private(set) var run = WorkerRun()
  /// Adopted from somebody else, who goes on to supervise it; see `ExternalAdoption`.
  var external: ExternalWorker?

  /// Between the directive to launch it and its outcome.
  var launching: LaunchAttempt?
  var process: WorkerProcess?
  var exitWatch: EventLoop.Token?
  var endLook: EventLoop.Token?
  /// Over its channels, from their making to the run's end.
  var conversation: WorkerConversation?
  var readiness: Readiness?
  var readinessProbe: ReadinessProbe?
  var shed: ShedAttempt?
  /// It has been told to read its configuration again.
  var reloading: WorkerReload?
  let listening = ListenerSet()
  /// What its runs have stored with us.
  var store: DescriptorStore?
  var logUpkeep = LogUpkeep()
  /// Of this run: nil before the first, and between two.
  var sleep: WorkerSleep?
  /// A freeze, hibernation or resume runs on another thread; an exit is looked at after it.
  var isBusy: Bool { sleep?.isBusy ?? false }
  /// While it is hibernated.
  var image: ImageOnDisk? { sleep?.rest.image }
  /// How much of its memory is still to come.
  var missing: MissingBytes? { sleep?.missing }
  /// Waits until the images of an earlier run are removed; not for the loop's thread.
  var imageRemoval: (@Sendable () -> Void)?
  /// What watches its inputs: while it sleeps, and (under `mode: activity`) while it runs.
  var wakeSources: (sources: WakeSources, token: EventLoop.Token)?
  var traffic: TrafficMonitor?
  var activityLook: SharedLook<ActivityFindings?>?
  /// What its manager wants of it while it sleeps; only of an external worker.
  var managerWatch: ManagerWatching.Look?
  /// When one of its own timers wakes it, while it sleeps.
  var alarm: (at: Instant, token: EventLoop.Token)?

  var liveness: LivenessMonitor?
  /// Answers health checks while it sleeps.
  var answering: AsleepAnswering?

  /// Something of its image stays on disk while it runs.
  var keepsBase: Bool {
    let rules = configuration.policy.hibernate
    return rules.enabled && rules.overlay && !rules.encrypt
  }

  init(
    configuration: WorkerConfiguration, environment: [String: String], isDeclared: Bool
  ) {
    id = WorkerID(configuration.name)
    self.configuration = configuration
    self.environment = environment
    self.isDeclared = isDeclared
  }

  subscript<Value>(dynamicMember path: WritableKeyPath<WorkerRun, Value>) -> Value {
    _read { yield run[keyPath: path] }
    _modify { yield &run[keyPath: path] }
  }

  /// A question of ours is out, or its connection isn't gone from the worker yet.
  var isAsked: Bool { liveness?.isAsking == true || run.shedOverHTTP?.isAsking == true }

  /// A look at its traffic takes what came with our question, and it isn't counted.
  var isSettling: Bool { liveness?.isSettling == true || run.shedOverHTTP?.isSettling == true }

  /// Nothing of this run reaches the next one.
  func endRun() { run = WorkerRun() }

  var profile: WorkerProfile {
    var profile = WorkerProfile(
      policy: configuration.policy, importance: configuration.importance,
      canShed: configuration.shed != nil || conversation?.canShed == true,
      canAnswer: conversation?.canAnswer == true,
      announcesReadiness: configuration.readiness != nil)
    profile.mayBeTerminated = external?.mayBeTerminated ?? true
    return profile
  }

  /// Keys of its configuration that were changed by a reload, and apply at its next launch.
  var keysChangedSinceLaunch: [String] {
    guard let launched = run.launched else { return [] }
    return configuration.changes(from: launched).filter(\.atLaunch).map(\.key)
  }

  /// For the hibernator and the freezer, on their own threads. The memories are those that were opened
  /// when it became ready, or was last suspended.
  func target() -> HibernationTarget? {
    guard let process else { return nil }
    return HibernationTarget(
      name: id.name, root: process.identity, session: process.session, cgroup: process.cgroup,
      memories: process.memories, waits: run.waits)
  }
}

/// What the last look at a running worker found; see `Sampling`.
struct ActivitySample {
  /// Bytes of anonymous memory at the last exact measurement.
  var anonymous: UInt64 = 0
  /// Processor time, in microseconds.
  var cpu: UInt64 = 0
  var at = Instant.zero
}
