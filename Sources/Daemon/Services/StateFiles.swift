import Linux

/// Replaces small files of the daemon, each as a whole. Tests have a fake.
protocol StateFileWriter {
  /// Returns at once. `then` is called later on the loop, with the reason if the file couldn't be
  /// replaced. If the disk doesn't respond, it isn't called. Files are replaced in the order of the
  /// calls.
  func replace(_ path: String, with text: String, then: @escaping (_ failure: String?) -> Void)
}

/// Writes the files on the thread of `DiskQueue`. Belongs to the loop's thread.
struct StateFiles: StateFileWriter {
  let loop: LoopReturn
  let disk: DiskQueue

  func replace(_ path: String, with text: String, then: @escaping (_ failure: String?) -> Void) {
    let done: @Sendable (String?) -> Void = loop.callback(then)
    disk.submit {
      done(
        failureText {
          try StateFile.replace(path, with: Array(text.utf8), durability: .data)
        })
    }
  }
}

/// Writes the daemon's small files on a thread of its own, in the order of the calls. A disk that
/// is slow, or doesn't respond, doesn't delay the daemon. May be called from any thread.
struct DiskQueue: Sendable {
  private let queue = WorkQueue(name: "dormouse-disk")

  func submit(_ job: @escaping @Sendable () -> Void) { queue.submit(job) }

  /// Submits a job, and returns a closure that waits until the job is done. Call the closure once,
  /// and not on the loop's thread.
  func submitAwaited(_ job: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
    let done = Semaphore()
    queue.submit {
      job()
      done.signal()
    }
    return { done.wait() }
  }

  /// Submits a job that writes or replaces a file. Its failure is logged.
  func write(
    _ what: String, _ log: DaemonLog, _ body: @escaping @Sendable () throws -> Void
  ) {
    queue.submit {
      do { try body() } catch { log(.warning, "\(what): \(error)") }
    }
  }

  /// Waits, at the daemon's end, until everything is written. Returns false if the disk took too
  /// long.
  @discardableResult
  func drain(within limit: Duration = .seconds(10)) -> Bool { queue.drain(within: limit) }
}

extension WorkQueue {
  /// Waits until everything that was submitted has been done. Returns false if it took too long.
  @discardableResult
  func drain(within limit: Duration) -> Bool {
    let done = Semaphore()
    submit { done.signal() }
    return done.wait(within: limit)
  }
}

/// Returns the text of the error that `body` threw; nil: it threw none.
func failureText(_ body: () throws -> Void) -> String? {
  do {
    try body()
    return nil
  } catch { return "\(error)" }
}
