import Daemon
import Glibc
import Linux
import Policy
import TestSupport

/// An event loop whose time passes, and whose descriptors have events, when a test says so. The
/// descriptors are real.
package final class FakeLoop: Timers, DescriptorWatches {
  private var count: UInt64 = 0

  package init(_ now: Instant = Instant(nanoseconds: 1_000_000_000)) { self.now = now }

  // MARK: clocks and timers

  package private(set) var now: Instant
  package var awake: AwakeInstant {
    AwakeInstant(nanoseconds: (now + (.zero - asleep)).nanoseconds)
  }
  private var asleep = Duration.zero

  /// A timer that is set.
  private struct Timer {
    var at: Instant
    /// Whether the machine's sleep doesn't count for the timer.
    let isAwake: Bool
    let token: LoopToken
    let file: StaticString
    let action: () -> Void
  }
  /// The timers that are set, sorted so that the next one is the last.
  private var timers: [Timer] = []

  /// When the next timer is due.
  package var next: Instant? { timers.last?.at }

  /// The delays of the timers from now on, with the shortest first.
  package var pending: [Duration] { timers.reversed().map { $0.at - now } }

  /// The files of the components that have set these timers.
  package var timedBy: Set<String> {
    Set(timers.map { "\($0.file)".split(separator: "/").last.map(String.init) ?? "" })
  }

  package func setTimer(
    after delay: Duration, file: StaticString, line: UInt, _ action: @escaping () -> Void
  ) -> LoopToken { add(now + delay, isAwake: true, file: file, action) }

  package func setTimer(
    at moment: Instant, file: StaticString, line: UInt, _ action: @escaping () -> Void
  ) -> LoopToken { add(moment, isAwake: false, file: file, action) }

  private func add(
    _ moment: Instant, isAwake: Bool, file: StaticString, _ action: @escaping () -> Void
  ) -> LoopToken {
    count += 1
    let (at, token) = (max(now, moment), LoopToken(id: count))
    // Most timers are due soon.
    let index = timers.lastIndex { $0.at > at }.map { $0 + 1 } ?? 0
    timers.insert(
      Timer(at: at, isAwake: isAwake, token: token, file: file, action: action), at: index)
    return token
  }

  package func cancel(_ token: LoopToken) {
    // What the action keeps is freed after the removal, and may cancel another timer then.
    if let index = timers.lastIndex(where: { $0.token == token }) { timers.remove(at: index) }
  }

  /// Lets the machine sleep, and then calls the timers that became due meanwhile.
  package func sleep(for duration: Duration) {
    now = now + duration
    asleep += duration
    for index in timers.indices where timers[index].isAwake {
      timers[index].at = timers[index].at + duration
    }
    timers.sort { $0.at > $1.at }
    while runOne() {}
  }

  /// Lets time pass, and calls the timers that become due, in their order.
  package func advance(by duration: Duration) {
    let end = now + duration
    while let next, next <= end {
      advance(to: next)
      runOne()
    }
    now = end
  }

  /// Lets time pass, and calls no timer.
  package func advance(to moment: Instant) { now = max(now, moment) }

  /// Calls one timer that is due now. Returns false if there is none.
  @discardableResult
  package func runOne() -> Bool {
    guard let timer = timers.last, timer.at <= now else { return false }
    timers.removeLast()
    timer.action()
    return true
  }

  /// Drops all timers and watches, as the end of a process does.
  package func abandon() {
    let dropped = (timers, watched)
    (timers, watched) = ([], [])
    withExtendedLifetime(dropped) {}
  }

  // MARK: descriptors

  package typealias Handler = (Epoll.Interest) -> Void

  package struct Watched {
    package let token: LoopToken
    package let descriptor: Descriptor
    package var interest: Epoll.Interest
    let handler: Handler

    func isReadable() throws -> Bool {
      guard interest.contains(.readable) else { return false }
      return try pollDescriptor(descriptor.raw, for: POLLIN, until: Deadline(in: .zero))
    }
  }

  package private(set) var watched: [Watched] = []
  /// The error code with which the next watches fail.
  package var refusal: Int32?

  /// The number of descriptors whose watch isn't empty.
  package var active: Int { watched.count { !$0.interest.isEmpty } }

  package func watch(
    _ descriptor: Descriptor, _ interest: Epoll.Interest, file: StaticString, line: UInt,
    _ handler: @escaping Handler
  ) throws(SystemCallError) -> LoopToken {
    if let refusal { throw SystemCallError("epoll_ctl", on: "test", code: refusal) }
    count += 1
    let token = LoopToken(id: count)
    watched.append(
      Watched(token: token, descriptor: descriptor, interest: interest, handler: handler))
    return token
  }

  package func change(
    _ descriptor: Descriptor, _ token: LoopToken, to interest: Epoll.Interest
  ) throws(SystemCallError) {
    for index in watched.indices where watched[index].token == token {
      watched[index].interest = interest
    }
  }

  package func unwatch(_ descriptor: Descriptor, _ token: LoopToken) {
    watched.removeAll { $0.token == token && $0.descriptor === descriptor }
  }

  /// Reports an event of the descriptor with this index, if there is one.
  package func fire(_ index: Int = 0) {
    if watched.indices.contains(index) { watched[index].handler(watched[index].interest) }
  }

  /// Reports that the descriptor is readable.
  package func fire(_ descriptor: Descriptor) {
    for each in watched where each.descriptor === descriptor { each.handler(.readable) }
  }

  /// Calls the handler of each readable descriptor once.
  ///
  /// - Returns: whether a descriptor was readable.
  @discardableResult
  package func serveOnce() throws -> Bool {
    let ready = try watched.filter { try $0.isReadable() }
    for each in ready where watched.contains(where: { $0.token == each.token }) {
      each.handler(.readable)
    }
    return !ready.isEmpty
  }

  /// Calls handlers until no descriptor is readable any more.
  package func serve() throws {
    for _ in 0..<10_000 where try !serveOnce() { return }
    throw TestFailure("a descriptor stays readable")
  }
}
