import Linux

/// The outcome of a job that runs on a thread of its own.
enum JobOutcome<Value> {
  case done(Value)
  /// The deadline of the job has passed. The job may never end; a later outcome is dropped.
  case overdue
  /// The job wasn't started, because an earlier job about the same subject hasn't ended.
  case busy

  /// nil unless the job is done.
  var value: Value? { if case .done(let value) = self { value } else { nil } }
}

/// Runs jobs that may wait without limit, such as reading files in any directory, on threads of
/// `JobPool.files`. The outcome is delivered on the loop, at the deadline at the latest. Belongs to
/// the loop's thread.
final class LoopJobs {
  private let loop: any Timers & DescriptorWatches
  private let jobs: JobPool
  private let mailbox: Mailbox<LoopJobs>
  /// The jobs that haven't ended. `done` is called on the loop when the job is done.
  private var waiting: [UInt64: (subject: String, done: () -> Void)] = [:]
  private var count: UInt64 = 0

  init(
    _ loop: any Timers & DescriptorWatches, _ jobs: JobPool = .files
  ) throws(SystemCallError) {
    self.loop = loop
    self.jobs = jobs
    mailbox = try Mailbox()
    _ = try loop.whenReadable(mailbox.descriptor) { [unowned self] in
      mailbox.drain(self, on: loop)
    }
  }

  /// Starts a job. `then` is called once, on the loop, and never before this returns.
  func run<Value: Sendable>(
    about subject: String, within limit: Duration, _ job: @escaping @Sendable () -> Value,
    then: @escaping (JobOutcome<Value>) -> Void
  ) {
    count += 1
    let (id, result) = (count, LateResult<Value>())
    let isAccepted = jobs.submitIfIdle(about: subject) { [mailbox] in
      let isWanted = result.set(job())
      return { if isWanted { mailbox.post { $0.finish(id) } } }
    }
    guard isAccepted else {
      loop.after(.zero) { then(.busy) }
      return
    }
    let timer = loop.after(limit) { [unowned self] in
      waiting[id] = nil
      result.abandon()
      then(.overdue)
    }
    let done = { [unowned self] in
      loop.cancel(timer)
      waiting[id] = nil
      if let value = result.consume() { then(.done(value)) }
    }
    waiting[id] = (subject, done)
  }

  /// Delivers the outcome. The subject names this step for `TurnCheck`.
  private func finish(_ id: UInt64) {
    guard let waiting = waiting[id] else { return }
    loop.step(waiting.subject) { waiting.done() }
  }
}
