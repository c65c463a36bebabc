import Linux
import Policy
import Supervision

/// Wakes one run of a worker for its own timers while it sleeps. `TimerWake` decides which of them
/// count. Belongs to the loop's thread.
final class WakeTimer {
  private let timers: any Timers
  /// Called with the reason when the timer fires.
  private let fire: (String) -> Void
  private var alarm: (at: Instant, token: EventLoop.Token)?
  /// When one of the worker's timers woke it the last time.
  private var lastFired: Instant?

  init(_ timers: any Timers, fire: @escaping (String) -> Void) {
    self.timers = timers
    self.fire = fire
  }

  /// When the worker will be woken; nil: none of its own timers wakes it.
  var due: Instant? { alarm?.at }

  /// Sets the timer: the worker has just fallen asleep. An earlier time isn't valid any more.
  ///
  /// - Parameters:
  ///   - times: the worker's timers and timeouts.
  ///   - shortest: the value of `background.wake_for_timers`; nil: no timer wakes the worker.
  func set(_ times: [DueTime], shortest: Duration?) {
    cancel()
    guard let shortest else { return }
    let now = timers.now
    guard
      let wake = TimerWake.first(
        of: times, shortest: shortest, sinceLast: lastFired.map { now - $0 })
    else { return }
    set(at: now + wake.delay, wake.reason)
  }

  /// - Parameter instant: if it has passed, the timer fires in the loop's next turn.
  func set(at instant: Instant, _ reason: String) {
    cancel()
    let token = timers.at(instant) { [weak self] in
      guard let self else { return }
      alarm = nil
      lastFired = timers.now
      fire(reason)
    }
    alarm = (instant, token)
  }

  /// Cancels the timer: the worker runs again, or has ended.
  func cancel() {
    guard let alarm else { return }
    timers.cancel(alarm.token)
    self.alarm = nil
  }
}
