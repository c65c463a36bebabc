import Policy

// sd_watchdog_enabled(3): a worker that sends `WATCHDOG=1` in time does its work. Its signs of life
// are no events: when one is due, the daemon is asked when the last one came.

/// A worker's watchdog. It counts while the worker is in the foreground or the background.
/// Otherwise it stands still, because a sleeping worker can't give a sign. Each wake begins a full
/// interval.
struct WatchdogClock: Codable, Sendable, Equatable {
  let interval: Duration
  /// When the next sign is due. `nil`: the clock stands still.
  private(set) var dueAt: Instant?
  /// When the daemon was asked for the last sign. `nil`: no answer is awaited.
  private(set) var askedAt: Instant?

  /// The time without an answer after which the engine asks again. A worker is never ended without
  /// an answer.
  static let timeout = Duration.seconds(10)

  init(_ interval: Duration, in state: WorkerState, at now: Instant) {
    self.interval = interval
    entered(state, at: now)
  }

  /// Applies a change of state.
  mutating func entered(_ state: WorkerState, at now: Instant) {
    guard state == .foreground || state == .background else {
      (dueAt, askedAt) = (nil, nil)
      return
    }
    if dueAt == nil { dueAt = now + interval }
  }

  /// When time alone changes something.
  var deadline: Instant? { askedAt.map { $0 + Self.timeout } ?? dueAt }

  /// Whether the daemon has to be asked for the last sign. Records that it is asked.
  mutating func isDue(at now: Instant) -> Bool {
    guard let deadline, now >= deadline else { return false }
    askedAt = now
    return true
  }

  /// Records the daemon's answer. Returns whether a sign is missing.
  mutating func misses(after sign: Instant?, at now: Instant) -> Bool {
    guard askedAt != nil, let due = dueAt else { return false }
    askedAt = nil
    dueAt = max(due, sign.map { min($0, now) + interval } ?? due)
    return dueAt.map { $0 <= now } ?? false
  }

  /// Moves the times by the time that the machine slept.
  mutating func postpone(by time: Duration) {
    dueAt?.postpone(by: time)
    askedAt?.postpone(by: time)
  }

  /// Continues after a missing sign, with a full interval.
  mutating func restart(at now: Instant) { dueAt = now + interval }
}

extension Engine {
  mutating func recordWatchdogInterval(_ index: Int, _ interval: Duration) {
    let worker = workers[index]
    guard worker.state.isAlive, worker.profile.leader == nil else { return }
    workers[index].run.watchdog =
      interval > .zero ? WatchdogClock(interval, in: worker.state, at: now) : nil
  }

  mutating func advanceWatchdog(_ index: Int) {
    // Checked at each advance, so this avoids a copy of what doesn't change.
    guard hasWatchdogDue(index), workers[index].run.watchdog?.isDue(at: now) == true else { return }
    emit(.checkWatchdog(workers[index].id))
  }

  private func hasWatchdogDue(_ index: Int) -> Bool {
    workers[index].run.watchdog?.deadline.map { now >= $0 } ?? false
  }

  mutating func recordWatchdogSeen(_ index: Int, _ sign: Instant?) {
    guard let interval = workers[index].run.watchdog?.interval,
      workers[index].run.watchdog?.misses(after: sign, at: now) == true
    else { return }
    endSilent(index, "no WATCHDOG=1 for \(interval.text)")
  }

  mutating func recordWatchdogTriggered(_ index: Int) {
    let state = workers[index].state
    guard state == .launching || state == .foreground || state == .background else { return }
    endSilent(index, "it sent WATCHDOG=trigger")
  }

  /// Ends a worker that isn't alive by its own report or silence. A configuration with a watchdog
  /// wants that, whatever `watchdog.on_timeout` says, as with a liveness probe.
  private mutating func endSilent(_ index: Int, _ reason: String) {
    if !endBroken(index, reason, by: .abort) { workers[index].run.watchdog?.restart(at: now) }
  }

  /// Ends a worker that doesn't do its work, except in shadow mode. Returns whether its termination
  /// has begun.
  @discardableResult
  mutating func endBroken(_ index: Int, _ reason: String, by signal: EndSignal) -> Bool {
    workers[index].lastMiss = Miss(at: now, text: reason)
    if isShadow(index) {
      reportImagined(index, "been terminated: \(reason)")
      return false
    }
    beginEnding(index, .watchdog(reason), gracefully: true, by: signal)
    return true
  }
}
