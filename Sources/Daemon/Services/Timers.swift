import Policy

/// Time and timers. `EventLoop` has the real ones; tests provide their own.
package protocol Timers: AnyObject {
  /// Nanoseconds of CLOCK_BOOTTIME.
  var now: Instant { get }

  /// `file` and `line` name the timer in the message of `TurnCheck`.
  func setTimer(
    after delay: Duration, file: StaticString, line: UInt, _ action: @escaping () -> Void
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

  @discardableResult
  package func after(
    _ delay: Duration, file: StaticString = #fileID, line: UInt = #line,
    do action: @escaping () -> Void
  ) -> LoopToken {
    setTimer(after: delay, file: file, line: line, action)
  }
}

extension EventLoop: Timers {
  var now: Instant { Self.now }

  func setTimer(
    after delay: Duration, file: StaticString, line: UInt, _ action: @escaping () -> Void
  ) -> Token {
    after(delay, file: file, line: line, action)
  }
}
