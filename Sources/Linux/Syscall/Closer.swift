import Glibc
import Synchronization

/// Closes descriptors on threads of its own. close(2) may wait for the last descriptor of a socket with SO_LINGER, or of a
/// file whose file system doesn't answer. A thread that has closed nothing for some seconds ends: to start one for each
/// descriptor takes 0.2 ms.
///
/// A descriptor that can't be handed over, because too many already wait, stays open: an open descriptor does
/// less harm than an event loop that waits.
public enum Closer {
  private struct State {
    var waiting: [Int32] = []
    var threads = 0
    var idle = 0
  }

  private static let state = Mutex(State())
  private static let work = Semaphore()
  /// One close may block each thread.
  private static let maxThreads = 8
  private static let maxWaiting = 16_384
  private static let patience = Duration.seconds(5)

  public static func close(_ descriptor: Int32) { close([descriptor]) }

  public static func close(_ descriptors: some Collection<Int32>) {
    guard !descriptors.isEmpty else { return }
    let needsThread = state.withLock { state in
      state.waiting += descriptors.prefix(max(0, maxWaiting - state.waiting.count))
      guard state.waiting.count > state.idle, state.threads < maxThreads else { return false }
      state.threads += 1
      return true
    }
    if !needsThread { return work.signal() }
    if Thread.start(name: "dormouse-close", { serve() }) { return }
    // No thread can be started: the next call tries again.
    state.withLock { $0.threads -= 1 }
    work.signal()
  }

  private static func serve() {
    repeat {
      while let next = state.withLock({ $0.waiting.popLast() }) { Glibc.close(next) }
    } while waits()
  }

  /// Waits for the next descriptor. False: none has come, and the thread ends.
  private static func waits() -> Bool {
    state.withLock { $0.idle += 1 }
    let isWanted = work.wait(within: patience)
    return state.withLock { state in
      state.idle -= 1
      // What came at the end of its patience counts on it.
      if isWanted || !state.waiting.isEmpty { return true }
      state.threads -= 1
      return false
    }
  }
}
