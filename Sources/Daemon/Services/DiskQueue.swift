import Linux

/// Small files of the daemon, written on threads of their own and in the order in which they were given: a disk
/// that is slow, or doesn't answer, doesn't delay the daemon.
struct DiskQueue: Sendable {
  private let queue = WorkQueue(name: "dormouse-disk")

  func submit(_ job: @escaping @Sendable () -> Void) { queue.submit(job) }

  /// Returns a closure that waits until the job is done; for any thread but the loop's, and once only.
  func submitAwaited(_ job: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
    let done = Semaphore()
    queue.submit {
      job()
      done.signal()
    }
    return { done.wait() }
  }

  /// The same for files that are replaced: a failure is logged.
  func write(
    _ what: String, _ log: DaemonLog, _ body: @escaping @Sendable () throws -> Void
  ) {
    queue.submit {
      do { try body() } catch { log(.warning, "\(what): \(error)") }
    }
  }

  /// At the daemon's end: waits until everything is written. False: the disk took too long.
  @discardableResult
  func drain(within limit: Duration = .seconds(10)) -> Bool { queue.drain(within: limit) }
}

extension WorkQueue {
  /// Waits until everything that was submitted has been done. False: it took too long.
  @discardableResult
  func drain(within limit: Duration) -> Bool {
    let done = Semaphore()
    submit { done.signal() }
    return done.wait(within: limit)
  }
}
