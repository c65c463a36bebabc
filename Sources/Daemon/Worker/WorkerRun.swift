import Control
import Hibernation
import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision

/// Everything that the daemon holds of one run of a worker's program: replaced as a whole by `endRun` when the
/// run ends, so that nothing of it reaches the next one, whose program may be another.
final class WorkerRun {
  // MARK: its process, and what is done to it

  var process: WorkerProcess?
  var exitWatch: EventLoop.Token?
  /// From the first request to end it, or the end of its root process.
  var ending: WorkerEnding?
  /// From the request to end it, to the end of the run.
  var stopCommand: StopCommand?
  /// Over its channels, from their making to the run's end.
  var conversation: WorkerConversation?
  var readiness: ReadinessWatch?
  var liveness: LivenessMonitor?
  var shed: ShedAttempt?
  var shedOverHTTP: ShedOverHTTP?
  /// nil before it has a process.
  var sleep: WorkerSleep?

  // MARK: what watches it

  /// What wakes it while it sleeps; nil before it has a process.
  var wakeWatch: WakeWatch?
  /// What watches its inputs under `mode: activity`, while it runs.
  var traffic: TrafficMonitor?
  var activityLook: SharedLook<ActivityFindings?>?
  /// What its manager wants of it while it sleeps; only of an external worker.
  var managerWatch: ManagerWatching.Look?

  // MARK: what is known of it

  /// The worker's own, until one of them changes.
  var launchedWith: SharedUntilChanged<WorkerConfiguration>?
  /// With what it was launched; `nil`: it wasn't launched yet.
  var launched: WorkerConfiguration? {
    get { launchedWith?.wrappedValue }
    set { launchedWith = newValue.map(SharedUntilChanged.init(wrappedValue:)) }
  }
  /// It was in the foreground under an earlier daemon, and returns there when it is adopted.
  var returnsToFront = false
  /// What its last hibernation took.
  var lastHibernation: LastHibernation?
  /// By this daemon's clock.
  var asleepSince: Instant?
  /// The interval that it has set by `WATCHDOG_USEC=`.
  var watchdogInterval: Duration?
  /// Waits for the end of the connections of our questions.
  var whenUnasked: (() -> Void)?
  var kernelKills = KernelKills()
  var sample = ActivitySample()
  var measuring = MeasuringState()
  /// The time-outs that its threads wait for, over its sleeps.
  var waits = TimedWaits()
  /// Its masters, if it is a prefork server, over its sleeps.
  let masters = PreforkMasters()

  /// The root process has ended. Nothing is begun any more: `exited` follows, and answers it all.
  var hasExited: Bool { ending?.hasExited ?? false }
  /// SIGKILL has been sent to all of it.
  var isKilled: Bool { ending?.isKilled ?? false }
  /// The root's number may be another process's by now.
  var isReaped: Bool { ending?.isReaped ?? false }

  /// The names of what the loop still watches or times for it.
  var heldOfLoop: [String] {
    var names: [String] = []
    if exitWatch != nil { names.append("exitWatch") }
    if wakeWatch?.isActive == true { names.append("wakeWatch") }
    return names
  }
}

/// Numbers the operations on a worker, so that what belongs to an earlier one is dropped.
struct OperationCount {
  typealias Number = UInt64
  private var latest: Number = 0

  /// Nothing that belongs to an earlier one is heard from now on.
  mutating func begin() -> Number {
    latest += 1
    return latest
  }

  func isLatest(_ number: Number) -> Bool { number == latest }
}
