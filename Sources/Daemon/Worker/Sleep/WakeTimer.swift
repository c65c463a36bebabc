import Lifecycle
import Linux
import Policy
import Supervision

/// The timer that wakes one run of a worker for its own timers while it sleeps. `TimerWake` decides which of
/// them count. Belongs to the loop's thread.
final class WakeTimer {
  private let timers: any Timers
  /// Called with the reason, when the time has come.
  private let ring: (String) -> Void
  private var alarm: (at: Instant, token: EventLoop.Token)?
  /// When one of its timers woke it the last time.
  private var lastRang: Instant?

  init(_ timers: any Timers, ring: @escaping (String) -> Void) {
    self.timers = timers
    self.ring = ring
  }

  /// When it will be woken; nil: no timer of its own wakes it.
  var due: Instant? { alarm?.at }

  /// It has just fallen asleep. An earlier time isn't valid any more.
  ///
  /// - Parameters:
  ///   - times: its timers and time-outs.
  ///   - shortest: `background.wake_for_timers`; nil: it is woken for none.
  func set(_ times: [DueTime], shortest: Duration?) {
    cancel()
    guard let shortest else { return }
    let now = timers.now
    guard
      let wake = TimerWake.first(
        of: times, shortest: shortest, sinceLast: lastRang.map { now - $0 })
    else { return }
    set(at: now + wake.delay, wake.why)
  }

  /// - Parameter instant: if it has passed, the timer fires in the loop's next turn.
  func set(at instant: Instant, _ why: String) {
    cancel()
    let token = timers.at(instant) { [weak self] in
      guard let self else { return }
      alarm = nil
      lastRang = timers.now
      ring(why)
    }
    alarm = (instant, token)
  }

  /// It runs again, or has ended.
  func cancel() {
    guard let alarm else { return }
    timers.cancel(alarm.token)
    self.alarm = nil
  }
}
