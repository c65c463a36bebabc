import Hibernation
import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision

/// What the daemon holds of one worker beside what the engine knows.
final class WorkerRuntime {
  let id: WorkerID
  var configuration: WorkerConfiguration
  /// All of it: what the configuration adds is laid over the daemon's, or the client's, own.
  var environment: [String: String]
  /// In the configuration file; else made by `run`.
  var isDeclared: Bool
  var announcedChannel = false
  /// It has answered a request itself (`X_DORMOUSE_DONE=1`), so it is expected to.
  var answersItself = false
  /// Adopted from somebody else, who goes on to supervise it; see `ForeignWorkers`.
  var foreign: ForeignWorker?

  var process: WorkerProcess?
  var exitWatch: EventLoop.Token?
  var notify: NotifySocket?
  var notifyWatch: EventLoop.Token?
  var pressure: PressureWatch?
  var pressureWatchToken: EventLoop.Token?
  var talk: WorkerTalk?
  var readiness: Readiness?
  var readinessProbe: ReadinessProbe?
  var shed: ShedAttempt?
  /// It has been told to read its configuration again.
  var reloading: WorkerReload?
  let listening = ListenerSet()
  var logUpkeep = LogUpkeep()
  /// A freeze, hibernation or resume runs on another thread; an exit is looked at after it.
  var isBusy = false
  /// The root process has ended. Nothing is begun any more: `exited` follows, and answers it all.
  var hasExited = false
  /// SIGKILL has been sent to all of it.
  var isKilled = false
  /// The root's number may be another process's by now.
  var isReaped = false
  /// A hibernation was tried since it was suspended, which stops it by signal for a while.
  var mayBeStopped = false
  /// Waking it failed half-way, here or in an earlier daemon: it takes what a new daemon does.
  var needsRecovery = false
  /// Nobody knows what its memory is: it is being killed.
  var mustNotRun = false
  /// The image, while the worker is hibernated.
  var imagePath: String?
  /// What its last hibernation took.
  var lastHibernation: (written: Int64, unchanged: Int64, seconds: Double)?
  /// It was resumed with pages missing, and may miss some still.
  var mayMissPages = false
  /// How it is resumed, and why, once it has been hibernated.
  var resumeGear: String?
  /// Memory that may be taken without asking.
  var offers: [PurgeableOffer] = []
  /// Bytes that their files took when they were last counted, and when the footprint was last measured.
  var allocatedAtRecount: Int64 = 0
  var allocatedAtMeasurement: Int64 = 0
  /// They will be counted anew in a moment.
  var recountIsDue = false
  /// By this daemon's clock.
  var asleepSince: Instant?
  /// What the worker last said of itself (`STATUS=`).
  var statusText: String?
  /// It has been said that its footprint can't be measured exactly.
  var isMeasuredRoughly = false
  var sample = ActivitySample()
  var measuring = MeasuringState()
  var measuringSince = Instant.zero
  /// What ends it, on another thread: nothing is reaped before that is done.
  var endings = 0
  /// The root process has ended, and what is left of it is being ended.
  var isBeingCleared = false
  var clearingSince: Instant?
  /// What watches its inputs: while it sleeps, and (under `by: activity`) while it runs.
  var wakeSources: (sources: WakeSources, token: EventLoop.Token)?
  var traffic: TrafficMonitor?
  /// When it last fell asleep.
  var leftUnread = LeftUnread()
  /// What it waited for when it last fell asleep, and can't be woken by.
  var unwatched: [String] = []
  /// When one of its own timers wakes it, while it sleeps.
  var alarm: (at: Instant, token: EventLoop.Token)?
  /// When one did so the last time.
  var lastAlarm: Instant?
  /// What it was to be woken for, until it runs.
  var unheardCall: String?

  /// What has been of it, and when it comes back; see `Restarting`.
  var runs = RunHistory()
  var liveness: Liveness?
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

  /// It speaks the worker protocol with us.
  private var isConnected: Bool { talk?.socket.isConnected ?? false }

  var profile: WorkerProfile {
    var profile = WorkerProfile(
      policy: configuration.policy, importance: configuration.importance,
      canShed: configuration.shed != nil || announcedChannel || isConnected,
      canAnswer: answersItself || isConnected,
      announcesReadiness: configuration.readiness != nil)
    profile.mayBeTerminated = foreign?.mayBeTerminated ?? true
    return profile
  }

  /// For the hibernator and the freezer, on their own threads.
  /// `tree`: where it is known already.
  func target(_ tree: ProcessTree? = nil) -> HibernationTarget? {
    guard let process else { return nil }
    var memories: [Int32: Descriptor] = [:]
    for stat in (tree ?? (try? process.tree()))?.processes ?? [] {
      memories[stat.pid] = process.memory(of: stat.identity)
    }
    return HibernationTarget(
      name: id.name, root: process.identity, session: process.session, cgroup: process.cgroup,
      memories: memories)
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
