import Glibc
import Linux
import Policy

@testable import Daemon

/// A loop whose time passes, and whose descriptors have events, when a test says so.
final class FakeLoop: Timers, DescriptorWatches {
  let timers: FakeTimers
  /// The error code with which the next watches fail.
  var refusal: Int32?
  private(set) var watched: [Watched] = []
  private var count: UInt64 = 0

  init(_ timers: FakeTimers = FakeTimers()) { self.timers = timers }

  struct Watched {
    let token: LoopToken
    let descriptor: Descriptor
    var interest: Epoll.Interest
    let handler: (Epoll.Interest) -> Void
  }

  var now: Instant { timers.now }
  func setTimer(
    after delay: Duration, file: StaticString, line: UInt, _ action: @escaping () -> Void
  ) -> LoopToken { timers.setTimer(after: delay, file: file, line: line, action) }
  var awake: AwakeInstant { timers.awake }
  func setTimer(
    at moment: Instant, file: StaticString, line: UInt, _ action: @escaping () -> Void
  ) -> LoopToken { timers.setTimer(at: moment, file: file, line: line, action) }
  func cancel(_ token: LoopToken) { timers.cancel(token) }

  func watch(
    _ descriptor: Descriptor, _ interest: Epoll.Interest, file: StaticString, line: UInt,
    _ handler: @escaping (Epoll.Interest) -> Void
  ) throws(SystemCallError) -> LoopToken {
    if let refusal { throw SystemCallError("epoll_ctl", on: "test", code: refusal) }
    count += 1
    let token = LoopToken(id: count)
    watched.append(
      Watched(token: token, descriptor: descriptor, interest: interest, handler: handler))
    return token
  }

  func change(
    _ descriptor: Descriptor, _ token: LoopToken, to interest: Epoll.Interest
  ) throws(SystemCallError) {
    for index in watched.indices where watched[index].token == token {
      watched[index].interest = interest
    }
  }

  func unwatch(_ descriptor: Descriptor, _ token: LoopToken) {
    watched.removeAll { $0.token == token && $0.descriptor === descriptor }
  }

  /// Calls the handlers of all readable descriptors.
  func serve() throws {
    for each in watched
    where try pollDescriptor(each.descriptor.raw, for: POLLIN, until: Deadline(in: .zero)) {
      each.handler(each.interest)
    }
  }

  /// Reports an event of the descriptor with this index.
  func fire(_ index: Int = 0) {
    if watched.indices.contains(index) { watched[index].handler(watched[index].interest) }
  }
}
