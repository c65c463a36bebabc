import Policy

@testable import Daemon

/// Virtual time: what is due next happens next, and nothing waits.
final class ShellClock: Timers {
  private(set) var now = Instant(nanoseconds: 1_000_000_000)
  private var waiting: [(at: Instant, token: EventLoop.Token, action: () -> Void)] = []
  private var count: UInt64 = 0

  var next: Instant? { waiting.first?.at }

  func setTimer(
    after delay: Duration, file: StaticString, line: UInt, _ action: @escaping () -> Void
  ) -> EventLoop.Token {
    count += 1
    let (at, token) = (now + delay, EventLoop.Token(id: count))
    let place = waiting.firstIndex { $0.at > at } ?? waiting.count
    waiting.insert((at, token, action), at: place)
    return token
  }

  func cancel(_ token: EventLoop.Token) { waiting.removeAll { $0.token == token } }

  func advance(to instant: Instant) { now = max(now, instant) }

  /// Does what is due now, one thing; false: nothing is.
  func runOne() -> Bool {
    guard let first = waiting.first, first.at <= now else { return false }
    waiting.removeFirst()
    first.action()
    return true
  }
}
