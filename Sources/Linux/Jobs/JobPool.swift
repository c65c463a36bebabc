import Synchronization

/// Threads that perform jobs about subjects (workers by name, files by purpose). Jobs about one
/// subject are performed one after the other, in the order in which they were submitted. Jobs about
/// different subjects run in parallel. A job that hangs occupies one thread, and delays no job
/// about another subject while there are threads left.
///
/// Some threads are reserved for urgent jobs, so that waking one worker never waits for the
/// freezing of others, however many of those hang. An urgent job makes the earlier jobs about the
/// same subject urgent, too.
///
/// Threads are started when they are needed, and the one that became idle last is woken first: the
/// others can end although a short job comes every moment. Any thread may call the methods.
public final class JobPool: Sendable {
  public typealias Job = @Sendable () -> Void
  /// A job that returns a closure. The closure is performed when the subject is free for another
  /// job.
  public typealias ReportingJob = @Sendable () -> @Sendable () -> Void

  /// The pool for work that may wait without limit because a file system, a device or a name
  /// service doesn't answer. The daemon submits it by `LoopJobs`, with a deadline.
  public static let files = JobPool(
    name: "dormouse-files", maxOrdinary: 256, endsAfter: .seconds(5))

  private let shared: Shared

  /// - Parameters:
  ///   - name: shows in `ps -L` (at most 15 bytes).
  ///   - maxOrdinary: the maximum number of threads that perform jobs that aren't urgent.
  ///   - urgentReserve: the number of additional threads, which perform urgent jobs only.
  ///   - endsAfter: a thread without a job for this time ends. `nil`: it stays, because ptrace
  ///     sessions depend on the thread that began them.
  public init(name: String, maxOrdinary: Int, urgentReserve: Int = 0, endsAfter: Duration? = nil) {
    shared = Shared(
      name: name, maxOrdinary: maxOrdinary, urgentReserve: urgentReserve, endsAfter: endsAfter)
  }

  deinit { shared.end() }

  public func submit(about subject: String, isUrgent: Bool = false, _ job: @escaping Job) {
    shared.submit(about: subject, isUrgent: isUrgent) {
      job()
      return {}
    }
  }

  /// Submits a job unless an earlier one about the subject hasn't ended; then it drops the job and
  /// returns false. A subject whose file system doesn't answer costs one thread, however often it
  /// is tried.
  public func submitIfIdle(about subject: String, _ job: @escaping ReportingJob) -> Bool {
    shared.submit(about: subject, onlyIfIdle: true, job)
  }

  /// Performs a short job that must not begin before earlier jobs about the subject end. If there
  /// are none, it is performed at once on the calling thread, because waking another thread costs
  /// 0.1 ms. Otherwise it is submitted as an urgent one.
  public func performAfterAll(about subject: String, _ job: @escaping Job) {
    if isIdle(about: subject) { return job() }
    submit(about: subject, isUrgent: true, job)
  }

  /// True if no job about the subject waits or runs.
  public func isIdle(about subject: String) -> Bool { shared.isIdle(about: subject) }

  /// The number of threads, and of those that wait for a job.
  var threads: Int { shared.state.withLock { $0.threads } }
  var idleThreads: Int { shared.state.withLock { $0.idle.count } }

  private final class Shared: Sendable {
    struct SubjectQueue {
      var jobs: [ReportingJob] = []
      var isUrgent = false
      /// True while a thread performs one of the subject's jobs.
      var isRunning = false
      /// True if the running job counts as an ordinary one, not as urgent.
      var isOrdinary = false
    }

    struct State {
      var queues: [String: SubjectQueue] = [:]
      /// The subjects that have waiting jobs and no running one, in the order in which they became
      /// ready.
      var ready: [String] = []
      var ordinaryRunning = 0
      var threads = 0
      /// What wakes each thread that waits for a job. The last one began to wait last.
      var idle: [Semaphore] = []
      /// The threads that were woken or started, and haven't looked for a job since.
      var woken = 0
      var hasEnded = false
    }

    private enum NextThread {
      case idle(Semaphore), new, none
    }

    private enum Turn {
      case job(subject: String, ReportingJob), wait, end
    }

    let name: String
    let maxOrdinary: Int
    let urgentReserve: Int
    let endsAfter: Duration?
    let state = Mutex(State())

    init(name: String, maxOrdinary: Int, urgentReserve: Int, endsAfter: Duration?) {
      (self.name, self.maxOrdinary, self.urgentReserve, self.endsAfter) = (
        name, maxOrdinary, urgentReserve, endsAfter
      )
    }

    /// Returns true if the job is accepted.
    @discardableResult
    func submit(
      about subject: String, isUrgent: Bool = false, onlyIfIdle: Bool = false,
      _ job: @escaping ReportingJob
    ) -> Bool {
      let (isAccepted, thread) = state.withLock { state in
        let isAccepted = !onlyIfIdle || state.queues[subject] == nil
        if isAccepted {
          var queue = state.queues[subject] ?? SubjectQueue()
          queue.jobs.append(job)
          queue.isUrgent = queue.isUrgent || isUrgent
          if !queue.isRunning, queue.jobs.count == 1 { state.ready.append(subject) }
          state.queues[subject] = queue
        }
        return (isAccepted, nextThread(&state))
      }
      wake(thread)
      return isAccepted
    }

    /// Chooses a thread for a job that none of the threads that were woken is going to perform.
    private func nextThread(_ state: inout State) -> NextThread {
      if let idle = idleThread(&state) { return .idle(idle) }
      guard Self.startable(state, maxOrdinary) > state.woken,
        state.threads < maxOrdinary + urgentReserve
      else { return .none }
      state.woken += 1
      state.threads += 1
      return .new
    }

    private func idleThread(_ state: inout State) -> Semaphore? {
      guard Self.startable(state, maxOrdinary) > state.woken, let idle = state.idle.popLast() else {
        return nil
      }
      state.woken += 1
      return idle
    }

    private func wake(_ thread: NextThread) {
      switch thread {
      case .none: break
      case .idle(let semaphore): semaphore.signal()
      case .new:
        if Thread.start(name: name, { [self] in run() }) { break }
        // The other threads will perform the jobs: one of them may have become idle meanwhile. If
        // there are none, a later submission tries again, even one that isn't accepted.
        let idle = state.withLock { state in
          state.woken -= 1
          state.threads -= 1
          return idleThread(&state)
        }
        idle?.signal()
      }
    }

    func isIdle(about subject: String) -> Bool { state.withLock { $0.queues[subject] == nil } }

    func end() {
      let idle = state.withLock { state in
        state.hasEnded = true
        state.woken += state.idle.count
        defer { state.idle = [] }
        return state.idle
      }
      for thread in idle { thread.signal() }
    }

    /// Returns the index in `ready` of the next job for a free thread; urgent ones come first.
    private static func next(_ state: State, _ maxOrdinary: Int) -> Int? {
      if let urgent = state.ready.firstIndex(where: { state.queues[$0]?.isUrgent == true }) {
        return urgent
      }
      return state.ordinaryRunning < maxOrdinary && !state.ready.isEmpty ? 0 : nil
    }

    /// The number of subjects whose next job a free thread could start.
    private static func startable(_ state: State, _ maxOrdinary: Int) -> Int {
      let urgent = state.ready.count { state.queues[$0]?.isUrgent == true }
      return urgent + max(0, min(state.ready.count - urgent, maxOrdinary - state.ordinaryRunning))
    }

    private func run() {
      let semaphore = Semaphore()
      var wasWoken = true
      while true {
        let (turn, thread) = state.withLock { state in
          if wasWoken { state.woken -= 1 }
          return (nextTurn(&state, semaphore), nextThread(&state))
        }
        wake(thread)
        switch turn {
        case .job(let subject, let job):
          let report = job()
          state.withLock { state in finish(subject, &state) }
          report()
          wasWoken = false
        case .wait:
          guard waits(for: semaphore) else { return }
          wasWoken = true
        case .end: return
        }
      }
    }

    /// What the calling thread does next. If it waits, it counts as idle from now on.
    private func nextTurn(_ state: inout State, _ semaphore: Semaphore) -> Turn {
      if let index = Self.next(state, maxOrdinary) {
        let subject = state.ready.remove(at: index)
        if let job = claim(subject, &state) { return .job(subject: subject, job) }
      }
      if state.hasEnded {
        state.threads -= 1
        return .end
      }
      state.idle.append(semaphore)
      return .wait
    }

    /// Waits until the thread is woken. It returns false if the thread is to end.
    private func waits(for semaphore: Semaphore) -> Bool {
      if semaphore.wait(within: endsAfter ?? Thread.idleTime) { return true }
      let ends = state.withLock { state in
        guard endsAfter != nil, let index = state.idle.firstIndex(where: { $0 === semaphore })
        else { return false }  // It stays, or is being woken at this moment.
        state.idle.remove(at: index)
        state.threads -= 1
        return true
      }
      if ends { return false }
      if endsAfter == nil { Thread.releaseUnusedStack() }
      semaphore.wait()
      return true
    }

    private func claim(_ subject: String, _ state: inout State) -> ReportingJob? {
      guard var queue = state.queues[subject], !queue.jobs.isEmpty else { return nil }
      let job = queue.jobs.removeFirst()
      queue.isRunning = true
      queue.isOrdinary = !queue.isUrgent
      if queue.isOrdinary { state.ordinaryRunning += 1 }
      state.queues[subject] = queue
      return job
    }

    private func finish(_ subject: String, _ state: inout State) {
      guard var queue = state.queues[subject] else { return }
      if queue.isOrdinary { state.ordinaryRunning -= 1 }
      queue.isRunning = false
      if queue.jobs.isEmpty {
        state.queues[subject] = nil
      } else {
        state.queues[subject] = queue
        state.ready.append(subject)
      }
    }
  }
}
