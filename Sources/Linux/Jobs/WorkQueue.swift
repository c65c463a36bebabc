import CLinux
import Dispatch
import Glibc
import Synchronization

/// One thread that performs jobs, always the same kernel thread. ptrace needs that: only the thread
/// that attached may give orders to a tracee. A `DispatchQueue` doesn't promise it.
///
/// Jobs are performed in order, but for urgent ones, which come before all that aren't: somebody
/// waits for a worker to be back, and nobody for a hundred others to be put away. Jobs about the same
/// subject never overtake each other: an urgent one makes those before it urgent, too.
public final class WorkQueue: Sendable {
  public typealias Job = @Sendable () -> Void

  private let backlog = Backlog()

  /// What the thread and the submitters share. The thread holds it, and not the queue, so that a
  /// forgotten queue can go and end its thread.
  private final class Backlog: Sendable {
    private let jobs = Mutex<(waiting: WaitingJobs, ended: Bool)>((WaitingJobs(), false))
    private let work = DispatchSemaphore(value: 0)

    func append(_ job: @escaping Job, about subject: String?, isUrgent: Bool) {
      jobs.withLock { $0.waiting.append(job, about: subject, isUrgent: isUrgent) }
      work.signal()
    }

    func prioritize(_ subject: String) { jobs.withLock { $0.waiting.prioritize(subject) } }

    func end() {
      jobs.withLock { $0.ended = true }
      work.signal()
    }

    enum Next {
      case job(Job), nothing, ended
    }

    /// Waits for the next job.
    func next(within time: DispatchTimeInterval?) -> Next {
      let limit = time.map { DispatchTime.now() + $0 } ?? .distantFuture
      if work.wait(timeout: limit) == .timedOut { return .nothing }
      let (job, ended) = jobs.withLock { jobs in (jobs.waiting.next(), jobs.ended) }
      return job.map(Next.job) ?? (ended ? .ended : .nothing)
    }
  }

  /// Starts the thread. `name` shows in `ps -L` (at most 15 bytes).
  ///
  /// - Parameter chore: performed on the thread after each job, and again after the time that it
  ///   returns, until it returns `nil`.
  public init(name: String, chore: (@Sendable () -> DispatchTimeInterval?)? = nil) {
    // Once, at the daemon's start: without its threads it can't do anything.
    let started = Thread.start(name: name) { [backlog] in
      var pause: DispatchTimeInterval?
      loop: while true {
        switch backlog.next(within: pause) {
        case .job(let job): job()
        case .nothing: break
        case .ended: break loop
        }
        pause = chore?()
      }
    }
    precondition(started, "no thread can be started")
  }

  deinit { backlog.end() }

  /// `subject`: whom the job is about, such as a worker's name.
  public func submit(
    about subject: String? = nil, isUrgent: Bool = false, _ job: @escaping Job
  ) {
    backlog.append(job, about: subject, isUrgent: isUrgent)
  }

  /// What waits to be done about the subject is urgent from now on.
  public func prioritize(_ subject: String) { backlog.prioritize(subject) }

  /// Performs `body` on the queue's thread and waits for it. Never from that thread itself.
  public func perform<Value: Sendable>(_ body: @escaping @Sendable () -> Value) -> Value {
    let done = DispatchSemaphore(value: 0)
    let slot = Slot<Value>()
    submit {
      slot.set(body())
      done.signal()
    }
    done.wait()
    return slot.take()
  }

  private final class Slot<Value: Sendable>: Sendable {
    private let value = Mutex<Value?>(nil)
    func set(_ new: Value) { value.withLock { $0 = new } }
    func take() -> Value {
      guard let result = value.withLock({ $0 }) else {
        preconditionFailure("perform() returned before its body had run")
      }
      return result
    }
  }
}

/// Plain POSIX threads.
public enum Thread {
  private final class Start: Sendable {
    let name: String
    let body: @Sendable () -> Void
    init(name: String, body: @escaping @Sendable () -> Void) {
      self.name = name
      self.body = body
    }
  }

  /// Starts a detached thread with a 512 KiB stack and all signals blocked: signals are the event
  /// loop's business. False when the kernel has none to give.
  public static func start(name: String, _ body: @escaping @Sendable () -> Void) -> Bool {
    let start = Unmanaged.passRetained(Start(name: name, body: body))
    let result = clinux_start_thread(
      { argument in
        guard let argument else { return }
        let start = Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
        clinux_set_thread_name(start.name)
        start.body()
      }, start.toOpaque(), 512 * 1024)
    if result != 0 { start.release() }
    return result == 0
  }
}

/// Runs `lane` on up to `lanes` threads, the calling one included, and returns when all are done.
/// Each lane takes indices below `count` from `next` until there are none; they come in order.
/// State that a lane needs (buffers, a compressor) is a local variable of it. On return nobody holds
/// what `lane` has captured any more: descriptors among that are closed when the caller lets go.
public func inParallel(
  count: Int, lanes: Int, _ lane: @escaping @Sendable (_ next: () -> Int?) -> Void
) {
  let cursor = Cursor()
  let done = DispatchSemaphore(value: 0)
  // Where threads are short, fewer lanes do the work.
  let helpers = (1..<max(1, min(lanes, count))).filter { _ in
    let work = Handover(lane)
    return Thread.start(name: "dormouse-lane") {
      work.perform { cursor.take(below: count) }
      done.signal()
    }
  }.count
  lane { cursor.take(below: count) }
  for _ in 0..<helpers { done.wait() }
}

/// Keeps a lane for a thread, and lets go of it before the thread reports: the thread's own closure
/// goes only some time after that.
private final class Handover: Sendable {
  typealias Lane = @Sendable (_ next: () -> Int?) -> Void
  private let lane: Mutex<Lane?>

  init(_ lane: @escaping Lane) { self.lane = Mutex(lane) }

  func perform(_ next: () -> Int?) {
    let lane = lane.withLock { lane in
      defer { lane = nil }
      return lane
    }
    lane?(next)
  }
}

private final class Cursor: Sendable {
  private let next = Atomic(0)

  func take(below count: Int) -> Int? {
    let index = next.add(1, ordering: .relaxed).oldValue
    return index < count ? index : nil
  }
}
