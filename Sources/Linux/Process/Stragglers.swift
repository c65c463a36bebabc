import CLinux
import Glibc
import Synchronization

/// Threads that a trace session couldn't detach, because they weren't stopped when it ended. The
/// kernel refuses PTRACE_DETACH for such a thread: a thread inside vfork(2), for example, doesn't
/// stop before its child executes a program or ends. Each straggler is detached at its next stop.
///
/// The kernel accepts ptrace calls only from the thread that seized. So each tracing thread calls
/// `release()` until it has no stragglers left. Or the tracing thread ends: then the kernel
/// detaches all threads that it traces, stopped or not (see `BriefTracer`).
public final class Stragglers: Sendable {
  public static let shared = Stragglers()

  private struct Straggler: Hashable {
    var tid: Int32
    let pid: Int32
    /// The ID of the thread of this process that seized it.
    let tracer: Int32
  }

  private let all = Mutex<[Straggler]>([])

  public init() {}

  /// Adds threads of a process that the calling thread has seized.
  func add(_ tids: [Int32], of pid: Int32) {
    let tracer = clinux_thread_id()
    all.withLock { $0 += tids.map { Straggler(tid: $0, pid: pid, tracer: tracer) } }
  }

  /// Detaches the calling thread's stragglers that are stopped by now. It doesn't wait.
  ///
  /// - Returns: the number of stragglers that the calling thread still has.
  @discardableResult
  public func release() -> Int {
    let tracer = clinux_thread_id()
    // Only this thread adds or removes stragglers with its own ID.
    let mine = all.withLock { $0.filter { $0.tracer == tracer } }
    if mine.isEmpty { return 0 }
    let left = mine.compactMap(Self.afterTrying)
    all.withLock { all in
      all.removeAll { $0.tracer == tracer }
      all += left
    }
    return left.count
  }

  /// Repeats `release()` until no straggler is left, for at most this time.
  func release(within time: Duration) {
    _ = waitUntil(Deadline(in: time)) { () throws(Never) in release() == 0 }
  }

  /// Waits until these processes have no stragglers left, for at most this time.
  public func release(of pids: [Int32], within time: Duration) {
    _ = waitUntil(Deadline(in: time)) { () throws(Never) in
      release()
      return !hasAny || threads(of: pids).isEmpty
    }
  }

  public var hasAny: Bool { all.withLock { !$0.isEmpty } }

  /// Returns the thread IDs of the stragglers of these processes.
  public func threads(of pids: [Int32]) -> [Int32] {
    let pids = Set(pids)
    return all.withLock { $0.filter { pids.contains($0.pid) }.map(\.tid) }
  }

  /// Whether the tracer with this TracerPid is a thread of this process that has stragglers.
  public func owns(tracer: Int32) -> Bool { tracer != 0 && belong(to: tracer) }

  func belong(to tracer: Int32) -> Bool {
    all.withLock { $0.contains { $0.tracer == tracer } }
  }

  /// Removes the stragglers of a tracing thread that has ended. The kernel has detached all threads
  /// that it traced.
  func tracerDidEnd(_ tracer: Int32) { all.withLock { $0.removeAll { $0.tracer == tracer } } }

  /// Tries to detach a straggler. It returns `nil` if the straggler is detached or has ended.
  private static func afterTrying(_ straggler: Straggler) -> Straggler? {
    let tid = straggler.tid
    var signal: Int32 = 0
    let stop = Int(clinux_ptrace_poll(tid, &signal))
    switch stop {
    case CLINUX_STOP_EXITED:
      // If another process's child has ended, its tracer must reap it first. The event loop handles
      // the end of this process's own child.
      let isOurs = tid == straggler.pid && isOurChild(tid)
      return isOurs || clinux_ptrace_reap(tid) != 0 ? nil : straggler
    case CLINUX_STOP_NONE, CLINUX_STOP_EVENT, CLINUX_STOP_SYSCALL, CLINUX_STOP_OTHER:
      return clinux_ptrace_detach(tid, 0) == 0 ? nil : straggler
    case CLINUX_STOP_SIGNAL:
      // The signal is the program's, so it is delivered.
      return clinux_ptrace_detach(tid, signal) == 0 ? nil : straggler
    default:
      // No tracee of this thread has this ID any more. A thread that executes a program gets the ID
      // of its process, and stays traced.
      var renamed = straggler
      renamed.tid = straggler.pid
      let isRenamed = tid != straggler.pid && isTraced(straggler.pid, by: straggler.tracer)
      return isRenamed ? renamed : nil
    }
  }

  private static func isTraced(_ pid: Int32, by tracer: Int32) -> Bool {
    do throws(SystemCallError) { return try ProcessStatus.read(pid).tracer == tracer } catch {
      return false
    }
  }

  private static func isOurChild(_ pid: Int32) -> Bool {
    do throws(SystemCallError) { return try ProcessStat.read(pid).parent == getpid() } catch {
      return true
    }
  }
}

/// A thread that traces for one task only, and then ends. At its end the kernel detaches all
/// threads that it still traces, even those that aren't stopped and couldn't be detached otherwise.
/// So no thread that is traced here can stay in a stop.
public enum BriefTracer {
  /// Performs `body` on such a thread, and waits until it traces no thread any more.
  ///
  /// - Returns: `nil` if no thread could be started.
  public static func perform<Value: Sendable>(
    _ body: @escaping @Sendable () -> Value
  ) -> Value? {
    let (outcome, arrival) = (LateResult<(Value, tracer: Int32)>(), Semaphore())
    let started = Thread.start(name: "dormouse-brief") {
      outcome.set((body(), clinux_thread_id()))
      arrival.signal()
    }
    guard started else { return nil }
    arrival.wait()
    guard let (value, tracer) = outcome.consume() else { return nil }
    if Stragglers.shared.belong(to: tracer) {
      let path = "/proc/self/task/\(tracer)"
      _ = waitUntil(Deadline(in: .seconds(5))) { () throws(Never) in access(path, F_OK) != 0 }
      Stragglers.shared.tracerDidEnd(tracer)
    }
    return value
  }

  /// Performs `body` on such a thread, which traces the processes meanwhile without stopping them.
  /// It traces each by its first thread, which is all that `ForcedAccess.tracingThread` requires.
  /// The processes are detached when this returns. A frozen process doesn't notice it. A process
  /// that has ended is left out.
  public static func perform<Value: Sendable>(
    tracing processes: [ProcessIdentity], _ body: @escaping @Sendable () -> Value
  ) throws(SystemCallError) -> Value {
    let outcome = perform { () -> Result<Value, SystemCallError> in
      do throws(SystemCallError) {
        for process in processes { try attach(process) }
        return .success(body())
      } catch { return .failure(error) }
    }
    guard let outcome else {
      throw SystemCallError("start", on: "a thread that traces", code: EAGAIN)
    }
    return try outcome.get()
  }

  private static func attach(_ process: ProcessIdentity) throws(SystemCallError) {
    let pid = process.pid
    do throws(SystemCallError) {
      try Yama.check("PTRACE_SEIZE", pid)
      try shim("PTRACE_SEIZE", on: "pid \(pid)") { clinux_ptrace_seize(pid, 0) }
    } catch {
      // For a process that has just ended, the kernel returns EPERM.
      if process.hasEnded { return }
      throw error
    }
    // The process isn't stopped, so it is detached when this thread ends.
    Stragglers.shared.add([pid], of: pid)
  }
}
