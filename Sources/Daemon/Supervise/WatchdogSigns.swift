import Lifecycle
import Linux
import Policy
import Supervision

// The watchdog of sd_watchdog_enabled(3), for workers with `watchdog:`. The engine keeps its clock, and asks
// for the worker's last sign of life. So `WATCHDOG=1` itself is no event: it isn't activity, and isn't written
// to the journal.

/// When a worker last gave a sign of life at `NOTIFY_SOCKET`.
struct WatchdogSigns: Equatable {
  private(set) var last: Instant?
  /// How long the machine had slept in all by the last look.
  private var slept: Duration

  init(slept: Duration = Self.sleptSoFar) { self.slept = slept }

  mutating func seen(at now: Instant) { last = now }

  /// The last sign; `now` if the machine has slept since the last look: the worker could give none, and it has
  /// a full interval from then on.
  mutating func sign(at now: Instant, slept total: Duration = Self.sleptSoFar) -> Instant? {
    defer { slept = total }
    if total - slept > Self.minSleep { seen(at: now) }
    return last
  }

  /// The two clocks aren't read at the same instant.
  private static let minSleep = Duration.milliseconds(100)

  private static var sleptSoFar: Duration {
    .nanoseconds(Clocks.boottime - Clocks.monotonic)
  }
}

/// Reports workers' watchdogs to the engine: the interval, and the last sign of life when the engine asks.
/// Belongs to the loop's thread.
final class WatchdogReporter {
  private let driver: EngineDriver
  private let workers: WorkerRegistry
  private let saveRecord: (WorkerUnit, WorkerState) -> Void

  /// - Parameter saveRecord: called when the next daemon has to know another interval.
  init(
    _ driver: EngineDriver, _ workers: WorkerRegistry,
    saveRecord: @escaping (WorkerUnit, WorkerState) -> Void
  ) {
    self.driver = driver
    self.workers = workers
    self.saveRecord = saveRecord
  }

  /// The worker has been launched, or adopted.
  func startWatchdog(of worker: WorkerUnit) {
    guard worker.conversation?.notifyPath != nil else { return }
    if let interval = worker.watchdogInterval ?? worker.launched?.watchdog {
      driver.send(.watchdogInterval(worker.id, interval))
    }
  }

  /// `WATCHDOG_USEC=`, as under systemd also of a worker whose configuration names no interval.
  func setWatchdog(of worker: WorkerUnit, to interval: Duration) {
    worker.watchdogInterval = interval
    if let state = driver.state.state(of: worker.id) { saveRecord(worker, state) }
    driver.send(.watchdogInterval(worker.id, interval))
  }

  func checkWatchdog(_ id: WorkerID) {
    guard let worker = workers[id] else { return }
    driver.send(.watchdogSeen(id, at: worker.conversation?.lastSign()))
  }
}
