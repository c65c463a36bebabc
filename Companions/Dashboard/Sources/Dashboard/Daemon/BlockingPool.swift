import NIOPosix
import Synchronization

/// Threads for calls that may wait: the daemon's socket, files. Requests never wait on the threads
/// of the server.
final class BlockingPool: Sendable {
  private let pool: NIOThreadPool
  private let maxCalls: Int
  private let waiting = Mutex(0)

  /// - Parameter maxCalls: The maximum number of calls at a time, including those that wait for a
  ///   thread.
  init(threads: Int, maxCalls: Int = .max) {
    pool = NIOThreadPool(numberOfThreads: threads)
    pool.start()
    self.maxCalls = maxCalls
  }

  /// All threads and queue entries are in use.
  struct Full: Error {}

  func run<Result: Sendable>(
    _ body: @escaping @Sendable () throws -> Result
  ) async throws -> Result {
    let isFull = waiting.withLock { count in
      if count >= maxCalls { return true }
      count += 1
      return false
    }
    if isFull { throw Full() }
    defer { waiting.withLock { $0 -= 1 } }
    return try await pool.runIfActive(body)
  }
}
