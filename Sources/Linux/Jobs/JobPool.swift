import Synchronization

/// Threads that perform jobs about subjects (workers by name, files by purpose). Jobs about one subject are performed
/// one after the other, in the order in which they came; jobs about different subjects side by side. A job that hangs
/// keeps one thread, and delays no job about another subject while there are threads left.
///
/// Some threads are kept for urgent jobs, so that waking one worker never waits for the freezing of
/// others, however many of those hang. An urgent job makes those before it about the same subject urgent.
///
/// Threads are started when they are needed.
public final class JobPool: Sendable {
  public typealias Job = @Sendable () -> Void
  /// It returns what is to be done when the subject is free for another job.
  public typealias ReportingJob = @Sendable () -> @Sendable () -> Void

  /// For work that may wait without limit because a file system, a device or a name service doesn't answer. The
  /// daemon submits it by `LoopJobs`, with a deadline.
  public static let files = JobPool(name: "dormouse-files", most: 256, endsAfter: .seconds(5))

  private let shared: Shared

  /// - Parameters:
  ///   - name: shows in `ps -L` (at most 15 bytes).
  ///   - most: how many threads perform jobs that aren't urgent.
  ///   - reserve: how many additional threads perform urgent jobs only.
  ///   - endsAfter: a thread without a job for this time ends; `nil`: it stays, because ptrace sessions depend on the
  ///     thread that began them.
  public init(name: String, most: Int, reserve: Int = 0, endsAfter: Duration? = nil) {
    shared = Shared(name: name, most: most, reserve: reserve, endsAfter: endsAfter)
  }

  deinit { shared.end() }

  public func submit(about subject: String, isUrgent: Bool = false, _ job: @escaping Job) {
    shared.submit(about: subject, isUrgent: isUrgent) {
      job()
      return {}
    }
  }

  /// Returns false, and drops the job, if an earlier one about the subject hasn't ended: a subject whose file system is
  /// dead costs one thread, however often it is tried.
  public func submitIfIdle(about subject: String, _ job: @escaping ReportingJob) -> Bool {
    shared.submit(about: subject, onlyIfIdle: true, job)
  }

  /// Performs a short job that mustn't come before others about the subject: at once on the calling thread if there are
  /// none, because another thread takes 0.1 ms to wake; else as an urgent one.
  public func performAfterAll(about subject: String, _ job: @escaping Job) {
    if isIdle(about: subject) { return job() }
    submit(about: subject, isUrgent: true, job)
  }

  /// False: a job about the subject is waiting or under way.
  public func isIdle(about subject: String) -> Bool { shared.isIdle(about: subject) }

  /// Threads that wait for a job.
  var idleThreads: Int { shared.state.withLock { $0.idle } }

  private final class Shared: Sendable {
    struct Line {
      var jobs: [ReportingJob] = []
      var isUrgent = false
      /// A thread performs one of them.
      var isUnderWay = false
      /// The job under way runs on a thread that isn't kept for urgent jobs.
      var isOrdinary = false
    }

    struct State {
      var lines: [String: Line] = [:]
      /// Subjects with waiting jobs and none under way, in the order in which they came.
      var ready: [String] = []
      var ordinaryUnderWay = 0
      var threads = 0
      var idle = 0
      var hasEnded = false
    }

    let name: String
    let most: Int
    let reserve: Int
    let endsAfter: Duration?
    let state = Mutex(State())
    let work = Semaphore()

    init(name: String, most: Int, reserve: Int, endsAfter: Duration?) {
      (self.name, self.most, self.reserve, self.endsAfter) = (name, most, reserve, endsAfter)
    }

    /// Returns whether the job is accepted.
    @discardableResult
    func submit(
      about subject: String, isUrgent: Bool = false, onlyIfIdle: Bool = false,
      _ job: @escaping ReportingJob
    ) -> Bool {
      let (isAccepted, needsThread) = state.withLock { state in
        let isAccepted = !onlyIfIdle || state.lines[subject] == nil
        if isAccepted {
          var line = state.lines[subject] ?? Line()
          line.jobs.append(job)
          line.isUrgent = line.isUrgent || isUrgent
          if !line.isUnderWay, line.jobs.count == 1 { state.ready.append(subject) }
          state.lines[subject] = line
        }
        // A thread that is idle may not have taken yet what it was woken for.
        let needsThread =
          Self.startable(state, most) > state.idle && state.threads < most + reserve
        if needsThread { state.threads += 1 }
        return (isAccepted, needsThread)
      }
      if isAccepted { work.signal() }
      if needsThread, !Thread.start(name: name, { [self] in run() }) {
        // The running threads will perform the jobs; if there are none, a later submission tries again, also one that
        // isn't accepted.
        state.withLock { $0.threads -= 1 }
      }
      return isAccepted
    }

    func isIdle(about subject: String) -> Bool { state.withLock { $0.lines[subject] == nil } }

    func end() {
      let threads = state.withLock { state in
        state.hasEnded = true
        return state.threads
      }
      for _ in 0..<threads { work.signal() }
    }

    /// The index in `ready` of the next job for a free thread; urgent ones first.
    private static func next(_ state: State, _ most: Int) -> Int? {
      if let urgent = state.ready.firstIndex(where: { state.lines[$0]?.isUrgent == true }) {
        return urgent
      }
      return state.ordinaryUnderWay < most && !state.ready.isEmpty ? 0 : nil
    }

    /// Subjects of which a free thread would do something.
    private static func startable(_ state: State, _ most: Int) -> Int {
      let urgent = state.ready.count { state.lines[$0]?.isUrgent == true }
      return urgent + max(0, min(state.ready.count - urgent, most - state.ordinaryUnderWay))
    }

    private func run() {
      while true {
        if let (subject, job) = state.withLock({ state in take(&state) }) {
          let report = job()
          state.withLock { state in finish(subject, &state) }
          report()
        } else if !waitsForWork() {
          return
        }
      }
    }

    /// Returns false when the thread is to end.
    private func waitsForWork() -> Bool {
      let hasEnded = state.withLock { state in
        state.idle += 1
        return state.hasEnded
      }
      let isWoken = hasEnded || work.wait(within: endsAfter ?? Thread.idleTime)
      if !isWoken, endsAfter == nil {
        Thread.releaseUnusedStack()
        work.wait()
      }
      return state.withLock { state in
        state.idle -= 1
        // A job that came at the end of the time counts on this thread. The semaphore then has one too many.
        guard Self.next(state, most) == nil, state.hasEnded || !isWoken && endsAfter != nil
        else { return true }
        state.threads -= 1
        return false
      }
    }

    private func take(_ state: inout State) -> (String, ReportingJob)? {
      guard let place = Self.next(state, most) else { return nil }
      let subject = state.ready.remove(at: place)
      guard var line = state.lines[subject], !line.jobs.isEmpty else { return nil }
      let job = line.jobs.removeFirst()
      line.isUnderWay = true
      line.isOrdinary = !line.isUrgent
      if line.isOrdinary { state.ordinaryUnderWay += 1 }
      state.lines[subject] = line
      return (subject, job)
    }

    private func finish(_ subject: String, _ state: inout State) {
      guard var line = state.lines[subject] else { return }
      if line.isOrdinary { state.ordinaryUnderWay -= 1 }
      line.isUnderWay = false
      if line.jobs.isEmpty {
        state.lines[subject] = nil
      } else {
        state.lines[subject] = line
        state.ready.append(subject)
      }
    }
  }
}
