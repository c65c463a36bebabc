import Policy

/// Time and timers on two clocks. `EventLoop` has the real ones; tests provide their own.
package protocol Timers: AnyObject {
  /// Counts through the machine's sleep: for how long something has lasted or wasn't used, and schedules.
  var now: Instant { get }
  /// Stands still while the machine sleeps: for what something has had the time to do.
  var awake: AwakeInstant { get }

  /// Counts as `awake`. `file` and `line` name the timer in the message of `TurnCheck`.
  func setTimer(
    after delay: Duration, file: StaticString, line: UInt, _ action: @escaping () -> Void
  ) -> LoopToken

  /// Counts as `now`.
  func setTimer(
    at moment: Instant, file: StaticString, line: UInt, _ action: @escaping () -> Void
  ) -> LoopToken

  func cancel(_ token: LoopToken)

  /// Names a part of a turn, for the message of `TurnCheck`.
  func step<Value>(_ what: @autoclosure () -> String, _ body: () -> Value) -> Value

  /// Between two parts of a turn: each is checked by itself.
  func checkpoint()
}

extension Timers {
  package func step<Value>(_ what: @autoclosure () -> String, _ body: () -> Value) -> Value {
    body()
  }

  package func checkpoint() {}

  /// For how long the machine has slept in all; less if this thread is interrupted between the two clocks.
  package var slept: Duration {
    let now = now
    return .nanoseconds(now.nanoseconds - awake.nanoseconds)
  }

  /// After this time without the machine's sleep: the other side of a deadline had all of it.
  @discardableResult
  package func after(
    _ delay: Duration, file: StaticString = #fileID, line: UInt = #line,
    do action: @escaping () -> Void
  ) -> LoopToken {
    setTimer(after: delay, file: file, line: line, action)
  }

  /// At this moment, or when the machine wakes after it. At once if it has passed.
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
