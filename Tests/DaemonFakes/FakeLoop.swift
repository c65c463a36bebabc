import Daemon
import Glibc
import Linux
import Policy
import TestSupport

/// An event loop whose time passes, and whose descriptors have events, when a test says so. The
/// descriptors are real.
package final class FakeLoop: Timers, DescriptorWatches {
  private var count: UInt64 = 0

  package init() {}

  // MARK: clocks and timers

  package private(set) var now = Instant(nanoseconds: 1_000_000_000)
  package var awake: AwakeInstant {
    AwakeInstant(nanoseconds: (now + (.zero - asleep)).nanoseconds)
  }
  private var asleep = Duration.zero
  /// The timers that are set. `isAwake` means that the machine's sleep doesn't count for the timer.
  private var timers: [(at: Instant, isAwake: Bool, token: LoopToken, action: () -> Void)] = []

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
