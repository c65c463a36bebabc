import Glibc
import Synchronization

/// Closes descriptors on other threads, which live while there are descriptors to close. close(2)
/// may wait if it closes the last descriptor of a socket with SO_LINGER, or of a file whose file
/// system doesn't answer.
///
/// If 16,384 descriptors wait already, a further one stays open. An open descriptor does less harm
/// than an event loop that waits. Any thread may call it.
public enum Closer {
  private struct State {
    var waiting: [Int32] = []
    var threads = 0
  }

  private static let state = Mutex(State())
  /// The maximum number of threads. Each may be blocked by one close.
  private static let maxThreads = 8
  private static let maxWaiting = 16_384

  public static func close(_ descriptor: Int32) { close([descriptor]) }

  public static func close(_ descriptors: some Collection<Int32>) {
    guard !descriptors.isEmpty else { return }
    let needsThread = state.withLock { state in
      state.waiting += descriptors.prefix(max(0, maxWaiting - state.waiting.count))
      guard state.threads < maxThreads else { return false }
      state.threads += 1
      return true
    }
    guard needsThread, !ShortThreads.start(name: "dormouse-close", { work() }) else { return }
    // No thread can be started. The next call tries again.
    state.withLock { $0.threads -= 1 }
  }

  private static func work() {
    while let next = nextWaiting() { Glibc.close(next) }
  }

  /// Returns the next descriptor; nil if the thread is to end.
  private static func nextWaiting() -> Int32? {
    state.withLock { state in
      if let next = state.waiting.popLast() { return next }
      state.threads -= 1
      return nil
    }
  }
}
