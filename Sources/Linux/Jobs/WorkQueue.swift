import CLinux
import Synchronization

/// One thread that performs jobs. It is always the same kernel thread unless the queue may release
/// it. ptrace needs that: only the thread that attached may control a tracee.
///
/// Jobs are performed in order, but urgent ones come before all others: a client waits for the
/// resume of one worker, and no client waits for the hibernation of a hundred others. Jobs about
/// the same subject never overtake each other: an urgent one makes the earlier ones urgent, too.
///
/// Any thread may call the methods.
public final class WorkQueue: Sendable {
  public typealias Job = @Sendable () -> Void

  private let backlog: QueueBacklog

  /// Makes a queue. It starts the thread unless the queue may end it.
  ///
  /// - Parameters:
  ///   - name: shows in `ps -L` (at most 15 bytes).
  ///   - idleTask: performed on the thread after each job, and again after the time that it
  ///     returns, until it returns `nil`.
  ///   - mayEndThread: asked on the thread when no job has come for 2 s. If it returns true the
  ///     thread ends, with its stack and the memory that the allocator keeps for it, and the next
  ///     job starts another one. `nil`: the thread stays.
  ///   - threadBudget: counts the threads of several queues. While there are few of them, the
  ///     thread stays, too.
  public init(
    name: String, idleTask: (@Sendable () -> Duration?)? = nil,
    mayEndThread: (@Sendable () -> Bool)? = nil, threadBudget: ThreadBudget? = nil
  ) {
    backlog = QueueBacklog(
      name: name, mayEndThread: mayEndThread, idleTask: idleTask, threadBudget: threadBudget)
    // The daemon can't work without its threads.
    if mayEndThread == nil { precondition(backlog.startThread(), "no thread can be started") }
  }

  deinit { backlog.end() }

  /// Appends a job.
  ///
  /// - Parameter subject: what the job is about, such as a worker's name.
  public func submit(
    about subject: String? = nil, isUrgent: Bool = false, _ job: @escaping Job
  ) {
    backlog.append(job, about: subject, isUrgent: isUrgent)
  }

  /// Makes the waiting jobs about the subject urgent.
  public func prioritize(_ subject: String) { backlog.prioritize(subject) }

  /// True if the queue has a thread now, or waits for one. A thread that may be released can end a
  /// moment later.
  public var hasThread: Bool { backlog.hasThread }

  /// Performs `body` on the queue's thread and waits for it. Calling it on that thread is a
  /// deadlock.
  public func perform<Value: Sendable>(_ body: @escaping @Sendable () -> Value) -> Value {
    let done = Semaphore()
    let result = LateResult<Value>()
    submit {
      result.set(body())
      done.signal()
    }
    done.wait()
    guard let value = result.consume() else {
      preconditionFailure("perform() returned before its body had run")
    }
    return value
  }
}

/// Functions for plain POSIX threads.
public enum Thread {
  private final class Start: Sendable {
    let name: String
    let body: @Sendable () -> Void
    init(name: String, body: @escaping @Sendable () -> Void) {
      self.name = name
      self.body = body
    }
  }

  /// Starts a detached thread with a 512 KiB stack and all signals blocked: the event loop handles
  /// the signals. It returns false if the kernel can't start a thread.
  ///
  /// - Parameter apart: true: the thread begins on another processor than the caller's, if there is
  ///   one. It is meant for threads that share a short piece of work with the caller: the kernel
  ///   would leave both on one processor until it balances the load, some milliseconds later.
  public static func start(
    name: String, apart: Bool = false, _ body: @escaping @Sendable () -> Void
  ) -> Bool {
    let start = Unmanaged.passRetained(Start(name: name, body: body))
    let result = clinux_start_thread(
      { argument in
        guard let argument else { return }
        let start = Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
        clinux_set_thread_name(start.name)
        start.body()
      }, start.toOpaque(), 512 * 1024, apart ? 1 : 0)
    if result != 0 { start.release() }
    return result == 0
  }

  /// After this time without a job, a thread that stays releases the unused part of its stack.
  static let idleTime = Duration.seconds(2)

  /// Returns the calling thread's stack below its current depth to the kernel: 12 to 400 KB after a
  /// job.
  static func releaseUnusedStack() { clinux_release_unused_stack() }
}

/// Runs `lane` on up to `lanes` threads, the calling one included, and returns when all are done.
/// If `lanes` is 1, only the calling thread works. Each lane gets indices below `count` from `next`
/// until there are none; they come in order. State that a lane needs (buffers, a compressor) is a
/// local variable of it. On return no thread references the values that `lane` has captured:
/// captured descriptors are closed when the caller releases them.
///
/// - Parameter indicesPerLane: there is one lane for this many indices, because starting a thread
///   costs as much as compressing 64 KB.
public func inParallel(
  count: Int, lanes: Int, indicesPerLane: Int = 3,
  _ lane: @escaping @Sendable (_ next: () -> Int?) -> Void
) {
  let cursor = Cursor()
  let done = Semaphore()
  let isUrgent = Thread.isUrgent
  // If threads can't be started, fewer lanes do the work.
  let helpers = (1..<max(1, min(lanes, (count + indicesPerLane - 1) / indicesPerLane))).compactMap {
    _ -> LateResult<Lane>? in
    // The lane is released before the thread reports its end. The thread's closure lives longer.
    let work = LateResult(lane)
    let isStarted = ShortThreads.start(name: "dormouse-lane", apart: true) {
      let body = { perform(work, with: cursor, count: count) }
      if isUrgent ? Thread.urgently(body) : body() { done.signal() }
    }
    return isStarted ? work : nil
  }
  lane { cursor.nextIndex(below: count) }
  // On a busy machine a helper may not have got a processor yet. It isn't needed any more.
  for helper in helpers where helper.consume() == nil { done.wait() }
}

private typealias Lane = @Sendable (_ next: () -> Int?) -> Void

/// Returns false if the lane was taken back, because the others have done its work.
private func perform(_ work: LateResult<Lane>, with cursor: Cursor, count: Int) -> Bool {
  guard let lane = work.consume() else { return false }
  lane { cursor.nextIndex(below: count) }
  return true
}

private final class Cursor: Sendable {
  private let next = Atomic(0)

  func nextIndex(below count: Int) -> Int? {
    let index = next.add(1, ordering: .relaxed).oldValue
    return index < count ? index : nil
  }
}
