import Daemon
import Policy

/// Time that passes when a test says so.
package final class FakeTimers: Timers {
  package private(set) var now = Instant(nanoseconds: 1_000_000_000)
  private var timers: [(at: Instant, token: LoopToken, action: () -> Void)] = []
  private var count: UInt64 = 0

  package init() {}

  /// Delays from now, the shortest first.
  package var pending: [Duration] { timers.map { $0.at - now }.sorted() }

  package func setTimer(
    after delay: Duration, file: StaticString, line: UInt, _ action: @escaping () -> Void
  ) -> LoopToken {
    count += 1
    let token = LoopToken(id: count)
    timers.append((now + delay, token, action))
    return token
  }

  package func cancel(_ token: LoopToken) { timers.removeAll { $0.token == token } }

  /// Calls what falls due meanwhile, in its order.
  package func advance(by duration: Duration) {
    let end = now + duration
    while let next = timers.filter({ $0.at <= end }).min(by: { $0.at < $1.at }) {
      cancel(next.token)
      now = next.at
      next.action()
    }
    now = end
  }
}
