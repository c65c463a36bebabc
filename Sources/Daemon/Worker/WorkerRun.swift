import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision

/// Everything that the daemon keeps for one run of a worker's program. `endRun` replaces it as a
/// whole when the run ends, so that nothing of it reaches the next run, whose program may be
/// another one.
final class WorkerRun {
  // MARK: process and operations

  var process: WorkerProcess?
  var exitWatch: EventLoop.Token?
  /// Set from the first request to end the run, or the end of its root process.
  var ending: WorkerEnding?
  /// The conversation over the worker's channels, from their creation until the end of the run.
  var conversation: WorkerConversation?
  var readiness: ReadinessWatch?
  var liveness: LivenessMonitor?
  var shed: ShedAttempt?
  /// The questions that are under way, or whose connection the worker hasn't closed yet.
  var questions: [QuietQuestion] = []
  /// nil until the run has a process.
  var sleep: WorkerSleep?

  // MARK: watches

  /// Watches what wakes the sleeping worker; nil until the run has a process.
  var wakeWatch: WakeWatch?
  /// Watches the inputs of the running worker under `mode: activity`.
  var traffic: TrafficMonitor?
  var activityProbe: CoalescedProbe<ActivityReading?>?
  /// Detects, for a sleeping external worker, whether its manager wants it to run.
  var managerWatch: (() -> String?)?
  /// The processes of an external worker when it last fell asleep.
  var sleepers: [ProcessIdentity] = []

  // MARK: state

  /// The worker's configuration at the launch. It is shared with the worker until one of them
  /// changes.
  var launchedWith: CopyOnWriteBox<WorkerConfiguration>?
  /// The configuration with which the worker was launched; nil: it hasn't been launched yet.
  var launched: WorkerConfiguration? {
    get { launchedWith?.wrappedValue }
    set { launchedWith = newValue.map(CopyOnWriteBox.init(wrappedValue:)) }
  }
  /// The worker was in the foreground under an earlier daemon, and returns there when it is
  /// adopted.
  var returnsToFront = false
  /// The measurements of the last hibernation.
  var lastHibernation: LastHibernation?
  /// When the worker fell asleep, in this daemon's time.
  var asleepSince: Instant?
  /// The interval that the worker has set by `WATCHDOG_USEC=`.
  var watchdogInterval: Duration?
  /// Called when the connections of the daemon's requests to the worker have ended.
  var actionAfterQuestions: (() -> Void)?
  var kernelKills = KernelKills()
  var sample = ActivitySample()
  var measuring = MeasuringState()
  /// The timeouts that the worker's threads wait for, across its sleeps.
  var waits = TimedWaits()
  /// The master processes of a prefork server, across its sleeps.
  let masters = PreforkMasters()
}

/// Numbers the operations on a worker, so that outcomes of earlier operations are dropped.
struct OperationCount {
  typealias Number = UInt64
  private var latest: Number = 0

  /// Begins an operation. Outcomes of earlier ones don't count from now on.
  mutating func begin() -> Number {
    latest += 1
    return latest
  }

  func isLatest(_ number: Number) -> Bool { number == latest }
}
