import Policy

// A worker that one of its own timers woke (`Event.timerDue`) runs in the background, does its
// work, and sleeps again as soon as it is idle. Neither `foreground.idle_after` nor
// `background.suspend_after` counts: they are for pauses between two uses, and this isn't a use.
//
// This applies only if activity is observed (`foreground.mode: activity`). Otherwise the usual
// grace applies.

/// A worker's run for one of its own timers.
struct TimerTick: Codable, Sendable, Equatable {
  var began: Instant
  /// When the worker last used processor time.
  var lastWork: Instant

  /// After this time without processor time the worker is idle. The daemon checks once a second.
  static let quiet = Duration.seconds(2)
  /// Work that lasts longer is more than a timer's, and brings the worker to the foreground.
  static let longest = Duration.seconds(10)

  var isOver: Instant { max(began, lastWork) + Self.quiet }
}

extension Engine {
  mutating func beginTimerRun(_ index: Int) {
    workers[index].run.tick = TimerTick(began: now, lastWork: now)
  }

  /// Records that the worker used processor time without traffic.
  mutating func recordWork(_ index: Int) {
    guard let tick = workers[index].run.tick, workers[index].state == .background,
      now - tick.began < TimerTick.longest
    else { return recordActivity(index) }
    workers[index].run.tick?.lastWork = now
  }
}
