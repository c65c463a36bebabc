import Linux
import Policy

@testable import Daemon

/// A loop whose time passes, and whose descriptors have events, when a test says so.
final class FakeLoop: Timers, DescriptorWatches {
  let timers: FakeTimers
  let watches = FakeWatches()
  var watched: [FakeWatches.Watched] { watches.watched }

  init(_ timers: FakeTimers = FakeTimers()) { self.timers = timers }

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
    try watches.watch(descriptor, interest, file: file, line: line, handler)
  }

  func change(
    _ descriptor: Descriptor, _ token: LoopToken, to interest: Epoll.Interest
  ) throws(SystemCallError) { try watches.change(descriptor, token, to: interest) }

  func unwatch(_ descriptor: Descriptor, _ token: LoopToken) {
    watches.unwatch(descriptor, token)
  }

  /// Reports an event of the descriptor with this index.
  func fire(_ index: Int = 0) { watches.fire(index) }
}
