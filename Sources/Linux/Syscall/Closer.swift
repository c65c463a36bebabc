import Glibc
import Synchronization

/// Closes descriptors on other threads, which live while there are descriptors to close. close(2)
/// may wait if it closes the last descriptor of a socket with SO_LINGER, or of a file whose file
/// system doesn't answer.
///
/// If 16,384 descriptors wait already, a further one stays open. An open descriptor does less harm
/// than an event loop that waits. Any thread may call it.
///
/// A worker can send files of its own file system, and that needn't answer for any of them. So
/// these have threads of their own: they would keep all others from being closed.
public final class Closer: Sendable {
  /// Closes descriptors that other processes have sent.
  public static let received = Closer()
  /// Closes all others.
  public static let shared = Closer()

  private struct State {
    var waiting: [Int32] = []
    var threads = 0
  }

  private let state = Mutex(State())
  /// The maximum number of threads of each closer. Each may be blocked by one close.
  private static let maxThreads = 8
  private static let maxWaiting = 16_384

  private init() {}

  public func close(_ descriptor: Int32) {
    let needsThread = state.withLock { state in
      if state.waiting.count < Self.maxWaiting { state.waiting.append(descriptor) }
      guard state.threads < Self.maxThreads else { return false }
      state.threads += 1
      return true
    }
    guard needsThread, !ShortThreads.start(name: "dormouse-close", { self.work() }) else { return }
    // No thread can be started. The next call tries again.
    state.withLock { $0.threads -= 1 }
  }

  private func work() {
    while let next = nextWaiting() { Glibc.close(next) }
  }

  /// Returns the next descriptor; nil if the thread is to end.
  private func nextWaiting() -> Int32? {
    state.withLock { state in
      if let next = state.waiting.popLast() { return next }
      state.threads -= 1
      return nil
    }
  }
}
