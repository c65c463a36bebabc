/// Inspects something that may not respond, such as a file system, on a thread of `LoopJobs`. At
/// most one inspection runs at a time. A caller that asks during an inspection gets the result of
/// the next one, because the state may have changed since the current one began. Belongs to the
/// loop's thread.
final class CoalescedProbe<Value: Sendable> {
  typealias Completion = (Value?) -> Void

  private let jobs: LoopJobs
  private let subject: String
  private let limit: Duration
  /// Called on the loop. It returns the closure that does the work on the other thread.
  private let prepare: () -> @Sendable () -> Value
  private var waiting: [Completion] = []
  private var isUnderWay = false

  init(
    _ jobs: LoopJobs, about subject: String, within limit: Duration,
    _ prepare: @escaping () -> @Sendable () -> Value
  ) {
    self.jobs = jobs
    self.subject = subject
    self.limit = limit
    self.prepare = prepare
  }

  /// Requests an inspection. `then` is called once, on the loop, and never before this returns. It
  /// gets nil if there was no result within the limit. While that inspection hangs, each further
  /// one gets nil at once.
  func ask(then completion: @escaping Completion) {
    waiting.append(completion)
    if !isUnderWay { begin() }
  }

  private func begin() {
    isUnderWay = true
    let served = waiting
    waiting = []
    // This object lives as long as the inspection, since its worker may be removed meanwhile.
    jobs.run(about: subject, within: limit, prepare()) { [self] outcome in
      for completion in served { completion(outcome.value) }
      isUnderWay = false
      if !waiting.isEmpty { begin() }
    }
  }
}
