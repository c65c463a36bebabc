import Policy

/// Time and timers. `EventLoop` has the real ones; tests hand in their own.
protocol Timers: AnyObject {
  /// Nanoseconds of CLOCK_BOOTTIME.
  var now: Instant { get }

  /// `file` and `line` name the timer in the message of `TurnCheck`.
  func setTimer(
    after delay: Duration, file: StaticString, line: UInt, _ action: @escaping () -> Void
  ) -> EventLoop.Token

  func cancel(_ token: EventLoop.Token)

  /// Names a part of a turn, for the message of `TurnCheck`.
  func step<Value>(_ what: @autoclosure () -> String, _ body: () -> Value) -> Value

  /// Between two parts of a turn: each is checked by itself.
  func checkpoint()
}

extension Timers {
  func step<Value>(_ what: @autoclosure () -> String, _ body: () -> Value) -> Value { body() }

  func checkpoint() {}

  @discardableResult
  func after(
    _ delay: Duration, file: StaticString = #fileID, line: UInt = #line,
    do action: @escaping () -> Void
  ) -> EventLoop.Token {
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
