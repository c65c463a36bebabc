import Synchronization

/// Threads that perform jobs about subjects (workers, by name). Jobs about one subject are performed one
/// after the other, in the order in which they came; jobs about different subjects side by side.
///
/// Some threads are kept for urgent jobs, so that waking one worker never waits for the freezing of
/// others, however many of those hang. An urgent job makes those before it about the same subject urgent.
///
/// Threads are started when they are needed, and stay: ptrace sessions depend on the thread that began
/// them.
public final class JobPool: Sendable {
  public typealias Job = @Sendable () -> Void

  private let shared: Shared

  /// - Parameters:
  ///   - name: shows in `ps -L` (at most 15 bytes).
  ///   - most: how many threads perform jobs that aren't urgent.
  ///   - reserve: how many additional threads perform urgent jobs only.
  public init(name: String, most: Int, reserve: Int = 0) {
    shared = Shared(name: name, most: most, reserve: reserve)
  }

  deinit { shared.end() }

  public func submit(about subject: String, isUrgent: Bool = false, _ job: @escaping Job) {
    shared.submit(about: subject, isUrgent: isUrgent, job)
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
      var jobs: [Job] = []
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
    let state = Mutex(State())
    let work = Semaphore()

    init(name: String, most: Int, reserve: Int) {
      (self.name, self.most, self.reserve) = (name, most, reserve)
    }

    func submit(about subject: String, isUrgent: Bool, _ job: @escaping Job) {
      let needsThread = state.withLock { state in
        var line = state.lines[subject] ?? Line()
        line.jobs.append(job)
        line.isUrgent = line.isUrgent || isUrgent
        if !line.isUnderWay, line.jobs.count == 1 { state.ready.append(subject) }
        state.lines[subject] = line
        // A thread that is idle may not have taken yet what it was woken for.
        guard Self.startable(state, most) > state.idle, state.threads < most + reserve
        else { return false }
        state.threads += 1
        return true
      }
      if needsThread, !Thread.start(name: name, { [self] in run() }) {
        // No thread could be started: the running threads will perform the jobs.
        state.withLock { $0.threads -= 1 }
      }
      work.signal()
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
        let job = state.withLock { state in take(&state) }
        if let (subject, job) = job {
          job()
          state.withLock { state in finish(subject, &state) }
          continue
        }
        if state.withLock({ $0.hasEnded }) { return }
        state.withLock { $0.idle += 1 }
        if !work.wait(within: Thread.idleTime) {
          Thread.releaseUnusedStack()
          work.wait()
        }
        state.withLock { $0.idle -= 1 }
      }
    }

    private func take(_ state: inout State) -> (String, Job)? {
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
