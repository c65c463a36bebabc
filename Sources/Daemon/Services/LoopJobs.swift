import Linux
import Policy
import Supervision

/// How a job beside the loop ended.
enum JobOutcome<Value> {
  case done(Value)
  /// Its deadline has passed. It may hang for ever; a later outcome is dropped.
  case overdue
  /// Not begun: an earlier job about the same subject hasn't ended.
  case busy
}

/// Runs jobs that may wait without limit, such as reading files in any directory, on a thread of
/// `JobPool.files`. The outcome comes back on the loop, at the deadline at the latest. Belongs to the loop's
/// thread.
final class LoopJobs {
  private let loop: any Timers & DescriptorWatches
  private let jobs: JobPool
  private let mailbox: Mailbox<LoopJobs>
  private var waiting: [UInt64: Waiting] = [:]
  private var count: UInt64 = 0

  private struct Waiting {
    let subject: String
    var timer: EventLoop.Token
    /// The job is done.
    var done: () -> Void
  }

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

  /// `then` is called once, on the loop, and never before this returns.
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
    waiting[id] = Waiting(subject: subject, timer: timer) { [unowned self] in
      loop.cancel(timer)
      waiting[id] = nil
      if let value = result.take() { then(.done(value)) }
    }
  }
  /// The subject names what the loop does with the outcome.
  private func finish(_ id: UInt64) {
    guard let waiting = waiting[id] else { return }
    loop.step(waiting.subject) { waiting.done() }
  }
}
