import Lifecycle
import Policy

// This is the watchdog of sd_watchdog_enabled(3), for workers with `watchdog:`. The engine has the
// timer, and asks for the worker's last sign of life. So `WATCHDOG=1` itself is no event: it isn't
// activity, and isn't written to the journal.

/// The time of a worker's last sign of life at `NOTIFY_SOCKET`.
struct WatchdogSigns: Equatable {
  private(set) var last: Instant?
  /// How long the machine had slept in all when this was read last.
  private var slept: Duration

  init(slept: Duration) { self.slept = slept }

  mutating func seen(at now: Instant) { last = now }

  /// The time of the last sign. It is `now` if the machine has slept since the last call: the
  /// worker could send no sign then, and has a full interval from now on.
  mutating func sign(at now: Instant, slept total: Duration) -> Instant? {
    defer { slept = total }
    if total - slept > Self.minSleep { seen(at: now) }
    return last
  }

  /// A shorter sleep isn't recognized, because the two clocks aren't read at the same instant.
  private static let minSleep = Duration.milliseconds(100)
}

// These functions report workers' watchdogs to the engine: the interval, and the last sign of life
// when the engine asks.
extension WorkerConversations {
  /// Reports the interval of a worker that has been launched or adopted.
  func startWatchdog(of worker: WorkerUnit) {
    guard worker.conversation?.notifyPath != nil else { return }
    if let interval = worker.watchdogInterval ?? worker.launched?.watchdog {
      driver.send(.watchdogInterval(worker.id, interval))
    }
  }

  /// Handles `WATCHDOG_USEC=`. As under systemd, a worker whose configuration has no interval may
  /// send it. The interval is recorded for the next daemon.
  func setWatchdog(of worker: WorkerUnit, to interval: Duration) {
    worker.watchdogInterval = interval
    if let state = driver.state.state(of: worker.id) { recordWriter.save(worker, state: state) }
    driver.send(.watchdogInterval(worker.id, interval))
  }

  func checkWatchdog(_ id: WorkerID) {
    guard let worker = workers[id] else { return }
    driver.send(.watchdogSeen(id, at: worker.conversation?.lastSign()))
  }
}
