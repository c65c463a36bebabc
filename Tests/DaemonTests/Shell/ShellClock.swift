import Linux
import Policy

@testable import Daemon

/// Virtual time: the next event happens at once, and nothing waits. A descriptor that is watched
/// becomes readable when the simulation says so.
final class ShellClock: Timers, DescriptorWatches {
  typealias Handler = (Epoll.Interest) -> Void

  private(set) var now: Instant
  /// The timers, sorted so that the next one is the last.
  private var waiting:
    [(at: Instant, token: EventLoop.Token, file: StaticString, action: () -> Void)] = []
  private var watched: [(token: EventLoop.Token, descriptor: Descriptor, handler: Handler)] = []
  private var count: UInt64 = 0

  init(_ now: Instant = Instant(nanoseconds: 1_000_000_000)) { self.now = now }

  var next: Instant? { waiting.last?.at }

  /// The files of the components whose timers haven't fired yet.
  var timedBy: Set<String> {
    Set(waiting.map { "\($0.file)".split(separator: "/").last.map(String.init) ?? "" })
  }

  /// The number of descriptors that are watched.
  var watchCount: Int { watched.count }

  func setTimer(
    after delay: Duration, file: StaticString, line: UInt, _ action: @escaping () -> Void
  ) -> EventLoop.Token {
    setTimer(at: now + delay, file: file, line: line, action)
  }

  /// The simulated machine doesn't sleep.
  var awake: AwakeInstant { AwakeInstant(nanoseconds: now.nanoseconds) }

  func setTimer(
    at moment: Instant, file: StaticString, line: UInt, _ action: @escaping () -> Void
  ) -> EventLoop.Token {
    count += 1
    let (at, token) = (max(now, moment), EventLoop.Token(id: count))
    // Most timers are due soon.
    let index = waiting.lastIndex { $0.at > at }.map { $0 + 1 } ?? 0
    waiting.insert((at, token, file, action), at: index)
    return token
  }

  func cancel(_ token: EventLoop.Token) {
    if let index = waiting.lastIndex(where: { $0.token == token }) { waiting.remove(at: index) }
  }

  func abandon() {
    let dropped = (waiting, watched)
    (waiting, watched) = ([], [])
    withExtendedLifetime(dropped) {}
  }

  func advance(to instant: Instant) { now = max(now, instant) }

  /// Fires one timer that is due now. Returns false if there is none.
  func runOne() -> Bool {
    guard let next = waiting.last, next.at <= now else { return false }
    waiting.removeLast()
    next.action()
    return true
  }

  // MARK: descriptors

  func watch(
    _ descriptor: Descriptor, _ interest: Epoll.Interest, file: StaticString, line: UInt,
    _ handler: @escaping Handler
  ) throws(SystemCallError) -> EventLoop.Token {
    count += 1
    let token = EventLoop.Token(id: count)
    watched.append((token, descriptor, handler))
    return token
  }

  func change(
    _ descriptor: Descriptor, _ token: EventLoop.Token, to interest: Epoll.Interest
  ) throws(SystemCallError) {}

  func unwatch(_ descriptor: Descriptor, _ token: EventLoop.Token) {
    watched.removeAll { $0.token == token }
  }

  func becomesReadable(_ descriptor: Descriptor) {
    for each in watched where each.descriptor === descriptor { each.handler(.readable) }
  }
}
