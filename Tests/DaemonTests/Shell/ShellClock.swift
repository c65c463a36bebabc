import Policy

@testable import Daemon

/// Virtual time: what is due next happens next, and nothing waits.
final class ShellClock: Timers {
  private(set) var now = Instant(nanoseconds: 1_000_000_000)
  /// The next one last.
  private var waiting: [(at: Instant, token: EventLoop.Token, action: () -> Void)] = []
  private var count: UInt64 = 0

  var next: Instant? { waiting.last?.at }

  func setTimer(
    after delay: Duration, file: StaticString, line: UInt, _ action: @escaping () -> Void
  ) -> EventLoop.Token {
    count += 1
    let (at, token) = (now + delay, EventLoop.Token(id: count))
    // Most are due soon.
    let place = waiting.lastIndex { $0.at > at }.map { $0 + 1 } ?? 0
    waiting.insert((at, token, action), at: place)
    return token
  }

  func cancel(_ token: EventLoop.Token) {
    if let place = waiting.lastIndex(where: { $0.token == token }) { waiting.remove(at: place) }
  }

  func advance(to instant: Instant) { now = max(now, instant) }

  /// Does what is due now, one thing; false: nothing is.
  func runOne() -> Bool {
    guard let next = waiting.last, next.at <= now else { return false }
    waiting.removeLast()
    next.action()
    return true
  }
}
