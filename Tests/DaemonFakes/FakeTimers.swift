import Daemon
import Policy

/// Time that passes, and a machine that sleeps, when a test says so.
package final class FakeTimers: Timers {
  package private(set) var now = Instant(nanoseconds: 1_000_000_000)
  package var awake: AwakeInstant {
    AwakeInstant(nanoseconds: (now + (.zero - asleep)).nanoseconds)
  }
  private var asleep = Duration.zero
  /// `isAwake`: the machine's sleep doesn't count.
  private var timers: [(at: Instant, isAwake: Bool, token: LoopToken, action: () -> Void)] = []
  private var count: UInt64 = 0

  package init() {}

  /// Delays from now, the shortest first.
  package var pending: [Duration] { timers.map { $0.at - now }.sorted() }

  package func setTimer(
    after delay: Duration, file: StaticString, line: UInt, _ action: @escaping () -> Void
  ) -> LoopToken { add(now + delay, isAwake: true, action) }

  package func setTimer(
    at moment: Instant, file: StaticString, line: UInt, _ action: @escaping () -> Void
  ) -> LoopToken { add(max(now, moment), isAwake: false, action) }

  private func add(
    _ moment: Instant, isAwake: Bool, _ action: @escaping () -> Void
  ) -> LoopToken {
    count += 1
    let token = LoopToken(id: count)
    timers.append((moment, isAwake, token, action))
    return token
  }

  package func cancel(_ token: LoopToken) { timers.removeAll { $0.token == token } }

  /// The machine sleeps, and then calls what fell due meanwhile.
  package func sleep(for duration: Duration) {
    now = now + duration
    asleep += duration
    for place in timers.indices where timers[place].isAwake {
      timers[place].at = timers[place].at + duration
    }
    let due = timers.filter { $0.at <= now }.sorted { $0.at < $1.at }
    for timer in due where timers.contains(where: { $0.token == timer.token }) {
      cancel(timer.token)
      timer.action()
    }
  }

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
