import Daemon
import Policy

/// The clocks and timers of a machine whose time passes, and which sleeps, when a test says so.
package final class FakeTimers: Timers {
  package private(set) var now = Instant(nanoseconds: 1_000_000_000)
  package var awake: AwakeInstant {
    AwakeInstant(nanoseconds: (now + (.zero - asleep)).nanoseconds)
  }
  private var asleep = Duration.zero
  /// The timers that are set. `isAwake` means that the machine's sleep doesn't count for the timer.
  private var timers: [(at: Instant, isAwake: Bool, token: LoopToken, action: () -> Void)] = []
  private var count: UInt64 = 0

  package init() {}

  /// The delays of the timers from now on, with the shortest first.
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

  /// Lets the machine sleep, and then calls the timers that became due meanwhile.
  package func sleep(for duration: Duration) {
    now = now + duration
    asleep += duration
    for index in timers.indices where timers[index].isAwake {
      timers[index].at = timers[index].at + duration
    }
    let due = timers.filter { $0.at <= now }.sorted { $0.at < $1.at }
    for timer in due where timers.contains(where: { $0.token == timer.token }) {
      cancel(timer.token)
      timer.action()
    }
  }

  /// Lets time pass, and calls the timers that become due, in their order.
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
