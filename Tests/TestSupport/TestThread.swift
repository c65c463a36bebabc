import Glibc
import Synchronization

/// A separate thread, which runs no tasks.
public final class TestThread {
  private var thread = pthread_t()

  private final class Body {
    let run: @Sendable () -> Void
    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
  }

  public init(_ run: @escaping @Sendable () -> Void) throws {
    let body = Unmanaged.passRetained(Body(run))
    let code = pthread_create(
      &thread, nil,
      { argument in
        if let argument { Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run() }
        return nil
      }, body.toOpaque())
    guard code == 0 else {
      body.release()
      throw TestFailure("pthread_create: \(code)")
    }
  }

  /// Call it once: a thread is either joined or detached.
  public func join() { pthread_join(thread, nil) }
  public func detach() { pthread_detach(thread) }
}

/// Blocks threads until it is opened.
public final class ThreadGate: Sendable {
  private let isOpen = Mutex(false)
  public init() {}
  public func open() { isOpen.withLock { $0 = true } }
  public func pass() { while !isOpen.withLock({ $0 }) { usleep(1000) } }
}
