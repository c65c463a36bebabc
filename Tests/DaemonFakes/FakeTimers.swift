import Policy

@testable import Daemon

/// Time that passes when a test says so.
final class FakeTimers: Timers {
  private(set) var now = Instant(nanoseconds: 1_000_000_000)
  private var timers: [(at: Instant, token: EventLoop.Token, action: () -> Void)] = []
  private var count: UInt64 = 0

  /// Delays from now, the shortest first.
  var pending: [Duration] { timers.map { $0.at - now }.sorted() }

  func setTimer(
    after delay: Duration, file: StaticString, line: UInt, _ action: @escaping () -> Void
  ) -> EventLoop.Token {
    count += 1
    let token = EventLoop.Token(id: count)
    timers.append((now + delay, token, action))
    return token
  }

  func cancel(_ token: EventLoop.Token) { timers.removeAll { $0.token == token } }

  /// Calls what falls due meanwhile, in its order.
  func advance(by duration: Duration) {
    let end = now + duration
    while let next = timers.filter({ $0.at <= end }).min(by: { $0.at < $1.at }) {
      cancel(next.token)
      now = next.at
      next.action()
    }
    now = end
  }
}
