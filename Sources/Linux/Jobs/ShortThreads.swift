import CLinux
import Synchronization

/// Threads for work of some milliseconds for which a client may be waiting: starting a thread costs
/// 0.15 to 0.3 ms. A thread whose work is done waits for other work. Up to three threads wait
/// without limit; the others end.
///
/// Don't use them for ptrace: what a thread traces stays traced until the thread ends
/// (`BriefTracer`).
public enum ShortThreads {
  private struct Work {
    let name: String
    let body: @Sendable () -> Void
  }

  /// `handedOver` never has more items than there are idle threads.
  private struct State {
    var handedOver: [Work] = []
    var idle = 0
  }

  private static let state = Mutex(State())
  private static let work = Semaphore()
  /// The maximum number of idle threads. A light wake uses three: one that fills the first pages
  /// beside the tracing thread, its pager, and one that closes descriptors.
  private static let maxIdle = 3

  /// Performs `body` on an idle thread, or on a new one as `Thread.start` does. For an idle thread,
  /// the kernel chooses the processor. When `body` has returned, its captured values are released.
  /// It returns false if no thread can be started. Any thread may call it.
  public static func start(
    name: String, apart: Bool = false, _ body: @escaping @Sendable () -> Void
  ) -> Bool {
    let isHandedOver = state.withLock { state in
      guard state.idle > state.handedOver.count else { return false }
      state.handedOver.append(Work(name: name, body: body))
      return true
    }
    if isHandedOver {
      work.signal()
      return true
    }
    // A thread's closure lives until the thread ends. `body` is released as soon as it has run.
    let first = LateResult(body)
    return Thread.start(name: name, apart: apart) {
      first.consume()?()
      serve()
    }
  }

  private static func serve() {
    while let next = next() {
      clinux_set_thread_name(next.name)
      next.body()
    }
  }

  /// Waits for work. It returns nil if enough threads wait already.
  private static func next() -> Work? {
    let waits = state.withLock { state in
      if state.idle == maxIdle { return false }
      state.idle += 1
      return true
    }
    guard waits else { return nil }
    clinux_set_thread_name("dormouse-idle")
    if !work.wait(within: Thread.idleTime) {
      Thread.releaseUnusedStack()
      work.wait()
    }
    return state.withLock { state in
      state.idle -= 1
      return state.handedOver.removeFirst()
    }
  }
}
