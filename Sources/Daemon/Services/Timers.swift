import Policy

/// The time and timers of two clocks. `EventLoop` has the real ones; tests have a fake. Belongs to
/// the loop's thread.
package protocol Timers: AnyObject {
  /// The time that also passes while the machine sleeps (CLOCK_BOOTTIME). It measures how long
  /// something has lasted or was unused, and serves schedules.
  var now: Instant { get }
  /// The time that stops while the machine sleeps (CLOCK_MONOTONIC). It measures how much time
  /// something has had to act.
  var awake: AwakeInstant { get }

  /// Sets a timer on the clock of `awake`. `file` and `line` name the timer in the message of
  /// `TurnCheck`.
  func setTimer(
    after delay: Duration, file: StaticString, line: UInt, _ action: @escaping () -> Void
  ) -> LoopToken

  /// Sets a timer on the clock of `now`.
  func setTimer(
    at moment: Instant, file: StaticString, line: UInt, _ action: @escaping () -> Void
  ) -> LoopToken

  func cancel(_ token: LoopToken)

  /// Names a step of a turn for the message of `TurnCheck`, and returns the value of `body`.
  func step<Value>(_ what: @autoclosure () -> String, _ body: () -> Value) -> Value

  /// Called between two steps of a turn, so that `TurnCheck` times each one separately.
  func checkpoint()
}

extension Timers {
  package func step<Value>(_ what: @autoclosure () -> String, _ body: () -> Value) -> Value {
    body()
  }

  package func checkpoint() {}

  /// How long the machine has slept in total. It is too small if this thread is interrupted between
  /// the two readings.
  package var slept: Duration {
    let now = now
    return .nanoseconds(now.nanoseconds - awake.nanoseconds)
  }

  /// Calls the action after this time, in which the sleep of the machine doesn't count: what the
  /// timer waits for has had all of the time to act.
  @discardableResult
  package func after(
    _ delay: Duration, file: StaticString = #fileID, line: UInt = #line,
    do action: @escaping () -> Void
  ) -> LoopToken {
    setTimer(after: delay, file: file, line: line, action)
  }

  /// Calls the action at this time, or when the machine wakes after it; at once if the time has
  /// passed.
  @discardableResult
  package func at(
    _ moment: Instant, file: StaticString = #fileID, line: UInt = #line,
    do action: @escaping () -> Void
  ) -> LoopToken {
    setTimer(at: moment, file: file, line: line, action)
  }
}

extension EventLoop: Timers {
  var now: Instant { Self.now }
  var awake: AwakeInstant { .now }
}
