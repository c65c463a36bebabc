import CLinux
import Synchronization

/// Threads for work of some milliseconds, for which a client may be waiting: to start a thread takes 0.15 to 0.3 ms. A
/// thread whose work is done waits for other work, up to three of them without limit; the others end.
///
/// Not for work with ptrace: what a thread traces stays traced until it ends (`BriefTracer`).
public enum ShortThreads {
  private struct Work {
    let name: String
    let body: @Sendable () -> Void
  }

  /// Work that threads wait for is never more than threads that wait.
  private struct State {
    var handedOver: [Work] = []
    var idle = 0
  }

  private static let state = Mutex(State())
  private static let work = Semaphore()
  /// For a light wake: one that fills the first pages beside the tracing thread, its pager, and one that closes.
  private static let mostIdle = 3

  /// As `Thread.start`; for a thread that waits already, the kernel chooses the processor. When `body` has returned, nothing that it has captured is held any more.
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
    let first = Once(body)
    return Thread.start(name: name, apart: apart) {
      first.perform()
      serve()
    }
  }

  /// A thread's closure is held until it ends.
  private final class Once: Sendable {
    private let body: Mutex<(@Sendable () -> Void)?>

    init(_ body: @escaping @Sendable () -> Void) { self.body = Mutex(body) }

    func perform() {
      let body = body.withLock { body in
        defer { body = nil }
        return body
      }
      body?()
    }
  }

  private static func serve() {
    while let next = next() {
      clinux_set_thread_name(next.name)
      next.body()
    }
  }

  /// Waits. `nil`: enough threads wait already.
  private static func next() -> Work? {
    let waits = state.withLock { state in
      if state.idle == mostIdle { return false }
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
