// Replaces Synchronization's Mutex in each module that scripts/sanitize builds for threads, and
// only there: the thread sanitizer doesn't see the standard library's futex, and would report every
// guarded access as a race. It knows pthread_mutex_lock(3), and so can check that the mutexes are
// used correctly.
import Glibc

// For the inlinable parts of WorkerKit.
@usableFromInline struct Mutex<Value: ~Copyable>: ~Copyable, @unchecked Sendable {
  // Unchecked: the value is only reached through `withLock`.
  private let lock: UnsafeMutablePointer<pthread_mutex_t>
  private let value: UnsafeMutablePointer<Value>

  @usableFromInline init(_ initial: consuming sending Value) {
    lock = .allocate(capacity: 1)
    lock.initialize(to: pthread_mutex_t())
    pthread_mutex_init(lock, nil)
    value = .allocate(capacity: 1)
    value.initialize(to: initial)
  }

  deinit {
    value.deinitialize(count: 1)
    value.deallocate()
    pthread_mutex_destroy(lock)
    lock.deallocate()
  }

  @usableFromInline borrowing func withLock<Result: ~Copyable, Failure: Error>(
    _ body: (inout sending Value) throws(Failure) -> sending Result
  ) throws(Failure) -> sending Result {
    pthread_mutex_lock(lock)
    defer { pthread_mutex_unlock(lock) }
    nonisolated(unsafe) let place = value
    return try body(&place.pointee)
  }
}
