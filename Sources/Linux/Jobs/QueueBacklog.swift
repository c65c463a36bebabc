import Synchronization

/// The state that a queue's thread and the submitters share. The thread references this state and
/// not the queue, so that an unused queue is freed and ends its thread.
final class QueueBacklog: Sendable {
  typealias Start = @Sendable (_ name: String, _ body: @escaping @Sendable () -> Void) -> Bool

  private struct State {
    var waiting = WaitingJobs()
    var hasEnded = false
    /// True if the queue has a thread of its own, or waits for the spare one.
    var hasThread = false
    var waitsForSpare = false
  }

  /// The spare queue, whose thread always exists. It serves queues whose own threads can't be
  /// started, because the machine or the daemon's cgroup has no room for one. It serves a queue
  /// until that has no job left and may release its thread. Other such queues wait until then, or
  /// until a thread can be started for their next job.
  static let spare = WorkQueue(name: "dormouse-spare")

  private let name: String
  private let mayEndThread: (@Sendable () -> Bool)?
  private let idleTask: (@Sendable () -> Duration?)?
  private let threadBudget: ThreadBudget?
  private let start: Start
  private let state = Mutex(State())
  private let work = Semaphore()

  /// - Parameter start: starts a thread of this name; it returns false if it can't.
  init(
    name: String, mayEndThread: (@Sendable () -> Bool)? = nil,
    idleTask: (@Sendable () -> Duration?)? = nil, threadBudget: ThreadBudget? = nil,
    start: @escaping Start = { Thread.start(name: $0, $1) }
  ) {
    self.start = start
    self.name = name
    self.mayEndThread = mayEndThread
    self.idleTask = idleTask
    self.threadBudget = threadBudget
  }

  var hasThread: Bool { state.withLock { $0.hasThread } }

  func append(_ job: @escaping WorkQueue.Job, about subject: String?, isUrgent: Bool) {
    let (needsThread, waits) = state.withLock { state in
      state.waiting.append(job, about: subject, isUrgent: isUrgent)
      return (!state.hasThread, state.waitsForSpare)
    }
    work.signal()
    if needsThread {
      if !startThread() { waitForSpare(isUrgent: isUrgent) }
    } else if waits {
      _ = start(name) { self.serveIfWaiting() }
    }
  }

  private func waitForSpare(isUrgent: Bool) {
    state.withLock { $0.waitsForSpare = true }
    Self.spare.submit(isUrgent: isUrgent) { self.serveIfWaiting(isSpare: true) }
  }

  private func serveIfWaiting(isSpare: Bool = false) {
    let isFirst = state.withLock { state in
      defer { state.waitsForSpare = false }
      return state.waitsForSpare
    }
    if isFirst { serve(within: isSpare ? .zero : Thread.idleTime, isSpare: isSpare) }
  }

  func prioritize(_ subject: String) { state.withLock { $0.waiting.prioritize(subject) } }

  func end() {
    state.withLock { $0.hasEnded = true }
    work.signal()
  }

  /// Starts the queue's thread if it has none. If no thread can be started, it returns false and
  /// the caller has the jobs performed elsewhere.
  func startThread() -> Bool {
    let isMine = state.withLock { state in
      defer { state.hasThread = true }
      return !state.hasThread
    }
    guard isMine else { return true }
    threadBudget?.enter()
    return start(name) { self.serve(within: Thread.idleTime) }
  }

  // MARK: the thread

  private enum Arrival {
    case job(WorkQueue.Job), nothing, ended
  }

  /// Performs jobs until the queue has ended, or may release its thread.
  ///
  /// - Parameter idleTime: the time for which it waits for another job before it releases its stack
  ///   or its thread.
  private func serve(within idleTime: Duration, isSpare: Bool = false) {
    var pause: Duration?
    // True after the thread has waited for `idleTime` and released the memory that it could.
    var isIdle = false
    while true {
      switch next(within: pause ?? (isIdle ? nil : idleTime)) {
      case .job(let job):
        job()
        isIdle = false
      case .nothing where pause == nil:
        if releaseThread(isSpare: isSpare) { return }
        if !isIdle { Thread.releaseUnusedStack() }
        isIdle = true
        continue
      case .nothing: break
      case .ended:
        _ = threadBudget?.leave(always: true)
        return
      }
      pause = idleTask?()
    }
  }

  /// Waits for the next job.
  private func next(within time: Duration?) -> Arrival {
    if let time {
      guard work.wait(within: time) else { return .nothing }
    } else {
      work.wait()
    }
    let (job, hasEnded) = state.withLock { ($0.waiting.next(), $0.hasEnded) }
    return job.map(Arrival.job) ?? (hasEnded ? .ended : .nothing)
  }

  /// Releases the thread if the queue may do that. It returns true if the thread is to end; the
  /// next job then starts another one.
  private func releaseThread(isSpare: Bool) -> Bool {
    guard let mayEndThread, mayEndThread(), threadBudget?.leave(always: isSpare) != false else {
      return false
    }
    let hasLeft = state.withLock { state in
      guard state.waiting.isEmpty, !state.hasEnded else { return false }
      state.hasThread = false
      return true
    }
    if !hasLeft { threadBudget?.enter() }
    return hasLeft
  }
}
