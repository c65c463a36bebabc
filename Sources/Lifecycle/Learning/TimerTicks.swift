import Policy

// A worker that one of its own timers woke (`Event.timerDue`) runs in the background, does what the timer
// was for, and goes back to sleep as soon as it is quiet. Neither `foreground.idle_after` nor
// `background.suspend_after` counts: they are for pauses between two uses, and no one uses it.
//
// Only where activity is observed (`foreground.mode: activity`); elsewhere the usual grace has to do.

/// It runs for a timer of its own.
struct TimerTick: Codable, Sendable, Equatable {
  var began: Instant
  /// When it last used processor time.
  var lastWork: Instant

  /// Without processor time for so long, it is quiet. The shell looks once a second.
  static let quiet = Duration.seconds(2)
  /// Work that goes on for longer is more than a timer's, and brings it to the foreground.
  static let longest = Duration.seconds(10)

  var isOver: Instant { max(began, lastWork) + Self.quiet }
}

extension Engine {
  /// Remembered while it sleeps or falls asleep, behind what else waits for it.
  mutating func recordTimerDue(_ index: Int, _ why: String) {
    switch workers[index].state {
    case .suspending, .suspended, .hibernating, .hibernated:
      guard workers[index].run.wakeNeeded == nil else { return }
      workers[index].run.wakeNeeded = why
      workers[index].run.wakeIsTimer = true
    default: break
    }
  }

  mutating func beginTick(_ index: Int) {
    workers[index].run.tick = TimerTick(began: now, lastWork: now)
  }

  /// It used processor time, and nothing has talked to it.
  mutating func recordWork(_ index: Int) {
    guard let tick = workers[index].run.tick, workers[index].state == .background,
      now - tick.began < TimerTick.longest
    else { return recordActivity(index) }
    workers[index].run.tick?.lastWork = now
  }
}
