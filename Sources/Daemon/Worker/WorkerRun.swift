import Control
import Hibernation
import Lifecycle
import Linux
import Policy
import PolicyFile
import Supervision

/// What the daemon holds of one run of a worker's program: replaced as a whole when the run ends, so that
/// nothing of it reaches the next one, whose program may be another.
///
/// Whatever must be closed when a run ends (sockets, watches, processes) is `WorkerRuntime`'s own.
struct WorkerRun {
  /// With what it was launched; `nil`: it wasn't launched yet.
  var launched: WorkerConfiguration?
  /// It was in the foreground under an earlier daemon, and returns there when it is adopted.
  var returnsToFront = false
  /// The root process has ended. Nothing is begun any more: `exited` follows, and answers it all.
  var hasExited = false
  /// SIGKILL has been sent to all of it.
  var isKilled = false
  /// The root's number may be another process's by now.
  var isReaped = false
  /// What its last hibernation took.
  var lastHibernation: (written: Int64, unchanged: Int64, seconds: Double)?
  /// By this daemon's clock.
  var asleepSince: Instant?
  /// The interval that it has set by `WATCHDOG_USEC=`.
  var watchdogInterval: Duration?
  var shedOverHTTP: ShedOverHTTP?
  /// Waits for the end of the connections of our questions.
  var whenUnasked: (() -> Void)?
  /// It has been said that its store of descriptors is full.
  var hasFullStore = false
  var hasUnsafeStore = false
  var kernelKills = OOMWatch()
  /// It has been said that its footprint can't be measured exactly.
  var isMeasuredRoughly = false
  var sample = ActivitySample()
  var measuring = MeasuringState()
  /// What ends it, on another thread: nothing is reaped before that is done.
  var endings = 0
  /// The root process has ended, and what is left of it is being looked for.
  var isLookedAt = false
  /// The root process has ended, and what is left of it is being ended.
  var isBeingCleared = false
  /// Names the attempt to do so.
  var clearingSince: Instant?
  /// The time-outs that its threads wait for, over its sleeps.
  var waits = TimedWaits()
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
