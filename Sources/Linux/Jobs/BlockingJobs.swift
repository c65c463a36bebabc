import Synchronization

/// Threads for work that may wait without limit because a file system, a device or a name service doesn't
/// answer. A job that hangs keeps one thread and delays no other job. There is never more than one job about
/// a subject, so that a subject whose file system is dead costs one thread, however often it is tried. The
/// submitter of a job has a deadline of its own (`LoopJobs`).
public final class BlockingJobs: Sendable {
  /// The work that may hang. It returns a function that handles the result; after that function the subject
  /// is free for another job.
  public typealias Job = @Sendable () -> @Sendable () -> Void

  /// The daemon's.
  public static let files = BlockingJobs(name: "dormouse-files")

  private let pool: Pool

  /// `name` shows in `ps -L` (at most 15 bytes). At most `threads` jobs run at once; others wait. A thread that had no
  /// job for `patience` ends.
  public init(name: String, threads: Int = 256, patience: Duration = .seconds(5)) {
    pool = Pool(name: name, maxThreads: threads, patience: patience)
  }

  /// Returns false, and drops the job, if an earlier one about the subject hasn't ended.
  public func submit(about subject: String, _ job: @escaping Job) -> Bool {
    pool.submit(about: subject, job)
  }

  /// The threads hold the pool, and not its owner.
  private final class Pool: Sendable {
    private struct State {
      var waiting: [(subject: String, job: Job)] = []
      var subjects: Set<String> = []
      var threads = 0
      var idle = 0
    }

    private let name: String
    private let maxThreads: Int
    private let state = Mutex(State())
    private let work = Semaphore()
    private let patience: Duration

    init(name: String, maxThreads: Int, patience: Duration) {
      self.name = name
      self.maxThreads = maxThreads
      self.patience = patience
    }

    func submit(about subject: String, _ job: @escaping Job) -> Bool {
      let (isAccepted, needsThread) = state.withLock { state in
        let isAccepted = state.subjects.insert(subject).inserted
        if isAccepted { state.waiting.append((subject, job)) }
        let needsThread = state.waiting.count > state.idle && state.threads < maxThreads
        if needsThread { state.threads += 1 }
        return (isAccepted, needsThread)
      }
      if isAccepted { work.signal() }
      if needsThread, !Thread.start(name: name, { self.serve() }) {
        // A thread that exists takes the job; if there is none, a later submission tries again, also one that is refused.
        state.withLock { $0.threads -= 1 }
      }
      return isAccepted
    }

    private func serve() {
      while true {
        state.withLock { $0.idle += 1 }
        _ = work.wait(within: patience)
        let next = state.withLock { state -> (subject: String, job: Job)? in
          state.idle -= 1
          // Also at the end of its patience: a job that came at that moment counts on this thread. The semaphore then has
          // one too many, which ends an idle thread early.
          if !state.waiting.isEmpty { return state.waiting.removeFirst() }
          state.threads -= 1
          return nil
        }
        guard let next else { return }
        let report = next.job()
        state.withLock { _ = $0.subjects.remove(next.subject) }
        report()
      }
    }
  }
}

/// Carries a result from a thread that may be late to a receiver that may have given up. A result without a
/// waiting receiver is destroyed on the thread that made it: closing its files may hang, too.
public final class LateResult<Value: Sendable>: Sendable {
  private struct State {
    var value: Value?
    var isAbandoned = false
  }
  private let state = Mutex(State())

  public init() {}

  /// Stores the result if a receiver still waits for it; otherwise returns false.
  public func set(_ value: Value) -> Bool {
    state.withLock { state in
      if !state.isAbandoned { state.value = value }
      return !state.isAbandoned
    }
  }

  /// nil: there is none yet.
  public func take() -> Value? {
    state.withLock { state in
      defer { state.value = nil }
      return state.value
    }
  }

  public func abandon() { state.withLock { $0.isAbandoned = true } }
}
