import Glibc
import Linux
import Synchronization

/// Notices that descriptors have been hung up (POLLHUP, POLLERR). poll(2) asks whatever is behind a
/// descriptor, which may wait (FUSE); so it has a thread of its own, which lives as long as there is
/// something to watch.
final class HangUpWatch: Sendable {
  private struct State {
    var watched: [UInt64: Descriptor] = [:]
    var isRunning = false
  }

  private let state = Mutex(State())
  private let change: EventCounter
  private let report: @Sendable (UInt64) -> Void

  init(_ report: @escaping @Sendable (UInt64) -> Void) throws(SystemCallError) {
    self.report = report
    change = try EventCounter()
  }

  func watch(_ number: UInt64, _ descriptor: Descriptor) {
    let needsThread = state.withLock { state in
      state.watched[number] = descriptor
      defer { state.isRunning = true }
      return !state.isRunning
    }
    change.signal()
    guard needsThread, !Thread.start(name: "dormouse-stored", { self.work() }) else { return }
    // The next one tries again.
    state.withLock { $0.isRunning = false }
  }

  func unwatch(_ number: UInt64) {
    let isWatched = state.withLock { $0.watched.removeValue(forKey: number) != nil }
    if isWatched { change.signal() }
  }

  func end() {
    state.withLock { $0.watched = [:] }
    change.signal()
  }

  private func work() {
    while true {
      let watched = state.withLock { state in
        if state.watched.isEmpty { state.isRunning = false }
        return state.watched
      }
      if watched.isEmpty { return }
      for number in hungUp(watched) {
        let isWatched = state.withLock { $0.watched.removeValue(forKey: number) != nil }
        if isWatched { report(number) }
      }
    }
  }

  /// Waits for a change, or a hang-up.
  private func hungUp(_ watched: [UInt64: Descriptor]) -> [UInt64] {
    let numbers = watched.keys.sorted()
    var polled = [pollfd(fd: change.descriptor.raw, events: Int16(POLLIN), revents: 0)]
    polled += numbers.map { pollfd(fd: watched[$0]?.raw ?? -1, events: 0, revents: 0) }
    guard poll(&polled, nfds_t(polled.count), -1) > 0 else { return [] }
    if polled[0].revents != 0 { change.clear() }
    return zip(numbers, polled.dropFirst()).compactMap { number, entry in
      Int32(entry.revents) & (POLLHUP | POLLERR) == 0 ? nil : number
    }
  }
}
