import Glibc
import Linux
import Synchronization

/// Reports descriptors whose other end has closed (POLLHUP, POLLERR). poll(2) asks the file behind
/// a descriptor, which may block (FUSE). So the watch has a thread of its own, which runs as long
/// as there is something to watch. Its methods may be called on any thread.
final class HangUpWatch: Sendable {
  private struct State {
    var watched: [UInt64: Descriptor] = [:]
    var isRunning = false
  }

  private let state = Mutex(State())
  private let change: EventCounter
  private let report: @Sendable (UInt64) -> Void

  /// - Parameter report: is called on the watch's thread, with the number that was given to
  ///   `watch`.
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
    // The thread couldn't be started. The next call tries again.
    state.withLock { $0.isRunning = false }
  }

  func unwatch(_ number: UInt64) {
    let isWatched = state.withLock { $0.watched.removeValue(forKey: number) != nil }
    if isWatched { change.signal() }
  }

  /// Stops watching all descriptors, which ends the thread.
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

  /// Waits for a change of the watched set or a hang-up. Returns the numbers that were hung up.
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
