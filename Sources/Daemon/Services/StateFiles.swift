import Linux

/// Replaces small files of the daemon, each as a whole. Tests have a fake.
protocol StateFileWriter {
  /// Returns at once. `then` is called later on the loop, with the reason if the file couldn't be
  /// replaced. If the disk doesn't respond, it isn't called. Files are replaced in the order of the
  /// calls.
  func replace(_ path: String, with text: String, then: @escaping (_ failure: String?) -> Void)
}

/// Writes the files on the thread of `Services.disk`. Belongs to the loop's thread.
struct StateFiles: StateFileWriter {
  let loop: LoopReturn
  let disk: WorkQueue

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

// `Services.disk` writes the daemon's small files on a thread of its own, in the order of calls. A
// disk that is slow, or doesn't respond, doesn't delay the daemon.
extension WorkQueue {
  /// Submits a job, and returns a closure that waits until the job is done. Call the closure once,
  /// and not on the loop's thread.
  func submitAwaited(_ job: @escaping Job) -> @Sendable () -> Void {
    let done = Semaphore()
    submit {
      job()
      done.signal()
    }
    return { done.wait() }
  }

  /// Submits a job that writes or replaces a file. Its failure is logged.
  func write(
    _ what: String, _ log: DaemonLog, _ body: @escaping @Sendable () throws -> Void
  ) {
    submit {
      do { try body() } catch { log(.warning, "\(what): \(error)") }
    }
  }

  /// Waits until everything that was submitted has been done. Returns false if it took too long.
  @discardableResult
  func drain(within limit: Duration = .seconds(10)) -> Bool {
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
