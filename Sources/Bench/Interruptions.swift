import Glibc
import Linux

/// Blocks the signals that would end this process while the program is stopped, and lets waits
/// notice them. The signals stay pending, and have their usual effect when they are unblocked.
final class Interruptions {
  private let queue: SignalQueue
  private let before: SignalMask

  init() throws(SystemCallError) {
    // Signals that are ignored, as under nohup(1), must not interrupt.
    let ignored = try ProcessStatus.read(getpid()).ignored
    let signals = [SIGINT, SIGTERM, SIGHUP, SIGQUIT].filter {
      !ProcessStatus.contains(ignored, $0)
    }
    before = SignalMask.current
    queue = try SignalQueue(signals)
  }

  /// Unblocks the signals. One that arrived meanwhile may end this process here.
  func end() { before.restore() }

  /// Consumes the pending signals, so that they don't end this process.
  func discard() {
    _ = queue.arrivals()
  }

  /// Waits until one of the descriptors is readable, and returns its index. The result is nil if
  /// the deadline passed. A signal throws `BenchError.interrupted`.
  func wait(for descriptors: [Int32], until deadline: Deadline) throws -> Int? {
    var entries = (descriptors + [queue.raw]).map {
      pollfd(fd: $0, events: Int16(POLLIN), revents: 0)
    }
    while true {
      let count = try waitForEvents(&entries, milliseconds: deadline.remainingMilliseconds)
      if count > 0 {
        if entries[entries.count - 1].revents != 0 { throw BenchError.interrupted }
        return entries.firstIndex { $0.revents != 0 }
      }
      if deadline.hasPassed { return nil }
    }
  }

  /// Pauses for that time. A signal ends the pause.
  func pause(_ duration: Duration) throws {
    _ = try wait(for: [], until: Deadline(in: duration))
  }
}
