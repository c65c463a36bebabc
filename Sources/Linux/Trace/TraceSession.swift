import CLinux
import Glibc

/// An error while a process is traced.
public enum TraceError: Error, Sendable, CustomStringConvertible {
  /// The process, or one of its threads, has ended.
  case vanished(pid: Int32)
  /// A thread didn't stop in time: it is in uninterruptible sleep, or the machine is overloaded.
  case unresponsive(thread: Int32, doing: String)
  /// No thread of the process waits in a system call: it is busy.
  case busy(pid: Int32)
  /// A thread is in a trace stop of an earlier session of this process, and hasn't been detached
  /// yet.
  case held(thread: Int32)
  case call(SystemCallError)
  /// An injected system call failed in the process.
  case injected(String, pid: Int32, code: Int32)

  public var description: String {
    switch self {
    case .vanished(let pid): "process \(pid) has ended"
    case .unresponsive(let thread, let doing): "thread \(thread) did not stop in time (\(doing))"
    case .busy(let pid): "process \(pid) is busy: none of its threads waits in a system call"
    case .held(let thread):
      "thread \(thread) is still in a trace stop of an earlier hibernation; it is being released"
    case .call(let error): error.description
    case .injected(let call, let pid, let code):
      "\(call) inside process \(pid): \(errorText(code))"
    }
  }

  static func from(_ error: SystemCallError, pid: Int32) -> TraceError {
    error.code == ESRCH || error.code == ECHILD ? .vanished(pid: pid) : .call(error)
  }
}

/// One thread that is stopped and traced.
public struct TracedThread: Sendable {
  public let tid: Int32
  /// The program's own registers, which must be restored.
  public var registers: clinux_registers
  public var signalMask: UInt64
  /// True if the thread was stopped inside a system call, so that it may be borrowed. Its registers
  /// alone don't show this: a call that will be restarted leaves them as if it hadn't been made
  /// yet.
  public var isWaiting: Bool

  public init(
    tid: Int32, registers: clinux_registers = clinux_registers(), signalMask: UInt64 = 0,
    isWaiting: Bool = false
  ) {
    self.tid = tid
    self.registers = registers
    self.signalMask = signalMask
    self.isWaiting = isWaiting
  }

  /// Whether both have the same registers and the same mask.
  public func isLike(_ other: TracedThread) -> Bool {
    signalMask == other.signalMask && registers.isLike(other.registers)
  }
}

/// All threads of one process, seized and stopped. A session is made and used on one thread only
/// (ptrace(2)), and must be ended by `detach()`.
public final class TraceSession {
  public let pid: Int32
  public internal(set) var threads: [TracedThread] = []
  /// The IDs of threads that are seized and haven't reported their first stop yet.
  private var unstopped: Set<Int32> = []
  /// The IDs of threads that weren't seized because they couldn't have stopped.
  private var leftOut: Set<Int32> = []
  private var isOver = false
  private let startTime: UInt64?

  /// The process's identity; nil if it was seized as a child, by its pid only.
  public var identity: ProcessIdentity? {
    startTime.map { ProcessIdentity(pid: pid, startTime: $0) }
  }

  /// The time in ns that a thread may need to report a stop.
  static let stopTimeout: Int64 = 5_000_000_000

  init(pid: Int32, startTime: UInt64?) {
    self.pid = pid
    self.startTime = startTime
  }

  deinit {
    // Threads that stay seized would hang without end at their next stop.
    precondition(isOver, "a trace session of pid \(pid) was dropped without detach()")
  }

  /// Seizes all threads, and repeats that until no new one appears. The process should have been
  /// stopped before (SIGSTOP): then the kernel stops it again by itself if the tracer dies.
  ///
  /// - Throws: `unresponsive` for a thread that is in uninterruptible sleep, or doesn't stop;
  ///   `vanished` if the pid isn't that process's any more.
  public static func seize(_ process: ProcessIdentity) throws(TraceError) -> TraceSession {
    try seize(pid: process.pid, startTime: process.startTime)
  }

  /// Seizes all threads of a process. Without its start time, the process must be one that can't
  /// have ended: a child that hasn't been waited for.
  public static func seize(
    pid: Int32, startTime: UInt64? = nil
  ) throws(TraceError) -> TraceSession {
    let session = TraceSession(pid: pid, startTime: startTime)
    do throws(TraceError) {
      while try session.seizeNewThreads() {}
      for index in session.threads.indices { try session.save(index) }
      return session
    } catch {
      session.detach()
      throw error
    }
  }

  /// Seizes the threads of a frozen or stopped process that can stop now, and leaves out all
  /// others. A thread in uninterruptible sleep (inside vfork(2), for example) stops when it
  /// returns, which may be much later. Use it on a `BriefTracer`.
  ///
  /// - Parameter only: the threads to seize; nil: all.
  /// - Returns: `nil` if no thread could be seized.
  public static func seizeWhatCanStop(
    _ process: ProcessIdentity, only: Set<Int32>? = nil, until deadline: Deadline
  ) -> TraceSession? {
    let session = TraceSession(pid: process.pid, startTime: process.startTime)
    do throws(TraceError) {
      while try session.seizeNewThreads(only: only, leavingOut: deadline) {}
      for index in session.threads.indices { try session.save(index) }
      if !session.threads.isEmpty { return session }
    } catch {}  // The caller continues without a session, whatever the error is.
    session.detach(waiting: .zero)
    return nil
  }

  /// Seizes the threads that aren't seized yet. It returns true if there were any.
  ///
  /// - Parameter deadline: threads that don't stop by then are left out; nil: such a thread is an
  ///   error.
  private func seizeNewThreads(
    only: Set<Int32>? = nil, leavingOut deadline: Deadline? = nil
  ) throws(TraceError) -> Bool {
    let seen = unstopped.union(leftOut).union(threads.map(\.tid))
    let current = try wrap { () throws(SystemCallError) in try Self.threadIDs(of: pid) }
    let new = current.filter { !seen.contains($0) && only?.contains($0) != false }
    for tid in new {
      if deadline != nil, !isAbleToStop(tid) {
        leftOut.insert(tid)
      } else {
        do throws(TraceError) { try seizeThread(tid) } catch {
          // A seized thread that isn't the process's must be released, even if other threads are
          // only left out.
          if deadline == nil || unstopped.contains(tid) { throw error }
          leftOut.insert(tid)
        }
      }
    }
    if !unstopped.isEmpty, !isSameProcess { throw .vanished(pid: pid) }
    for tid in new where unstopped.contains(tid) {
      do throws(TraceError) {
        try waitForEventStop(tid, doing: "seizing", until: deadline)
      } catch {
        if deadline == nil { throw error }
        continue
      }
      unstopped.remove(tid)
      threads.append(TracedThread(tid: tid))
    }
    return !new.isEmpty
  }

  private func seizeThread(_ tid: Int32) throws(TraceError) {
    if !isAbleToStop(tid) {
      throw hasEnded(tid) ? .vanished(pid: pid) : .unresponsive(thread: tid, doing: "seizing")
    }
    try attach(tid)
  }

  func attach(_ tid: Int32) throws(TraceError) {
    do throws(SystemCallError) {
      try Yama.check("PTRACE_SEIZE", pid)
      try shim("PTRACE_SEIZE", on: "thread \(tid)") {
        clinux_ptrace_seize(tid, UInt64(CLINUX_TRACE_SYSGOOD))
      }
    } catch {
      // For a thread that has just ended, the kernel returns EPERM.
      throw hasEnded(tid) ? .vanished(pid: pid) : .from(error, pid: pid)
    }
    unstopped.insert(tid)
    // This is done even if the thread proves to be another process's: without a stop it can't be
    // detached.
    try request("PTRACE_INTERRUPT", of: tid) { clinux_ptrace_interrupt(tid) }
    // The ID may have become that of another process's thread between the listing and the seizure.
    // From now on it stays with this thread.
    if hasEnded(tid) { throw .vanished(pid: pid) }
  }

  /// Whether the thread can stop now. A thread in uninterruptible sleep reports its stop only when
  /// the sleep ends, and until then it couldn't be detached either.
  private func isAbleToStop(_ tid: Int32) -> Bool {
    do throws(SystemCallError) {
      let state = try ProcessStat.read(thread: tid, of: pid).state
      return state != .uninterruptible && !state.isEnded
    } catch { return !error.meansVanished }
  }

  /// True if the pid hasn't been given to another process. After a thread of the process is seized,
  /// that can't happen any more.
  private var isSameProcess: Bool {
    guard let startTime else { return true }
    do throws(SystemCallError) { return try ProcessStat.read(pid).startTime == startTime } catch {
      return !error.meansVanished
    }
  }

  private func save(_ index: Int) throws(TraceError) {
    let tid = threads[index].tid
    threads[index].registers = try readRegisters(tid)
    CallsBeforeStop.complete(&threads[index].registers, of: tid, in: pid)
    threads[index].isWaiting =
      threads[index].registers.isInSystemCall && !threads[index].registers.areOfKernel
    var mask: UInt64 = 0
    try request("PTRACE_GETSIGMASK", of: tid) { clinux_ptrace_get_signal_mask(tid, &mask) }
    threads[index].signalMask = mask
  }

  /// Restores the registers and the mask of a stopped thread.
  public func restore(_ thread: TracedThread) throws(TraceError) {
    // The mask is written first. A recovery recognizes a thread with foreign registers by its
    // address, but it couldn't distinguish a thread that has its own registers and a foreign mask
    // from one that has run.
    try setSignalMask(thread.tid, thread.signalMask)
    // A thread of the kernel keeps its registers, and arm64 refuses to write them (EINVAL).
    if thread.registers.areOfKernel {
      let current = try readRegisters(thread.tid)
      if current.isLike(thread.registers) { return }
    }
    try writeRegisters(thread.tid, thread.registers)
  }

  /// Takes over the threads of an earlier session. A thread that differs gets that session's
  /// registers and mask now, at an event stop.
  ///
  /// - Throws: `vanished` if the threads aren't the same ones.
  public func adopt(_ earlier: [TracedThread]) throws(TraceError) {
    for thread in earlier {
      guard let index = threads.firstIndex(where: { $0.tid == thread.tid }) else {
        throw .vanished(pid: pid)
      }
      if !threads[index].isLike(thread) { try restore(thread) }
    }
    threads = earlier
  }

  /// Suspends seccomp filters while the session lasts (PTRACE_O_SUSPEND_SECCOMP).
  public func suspendSeccomp() throws(SystemCallError) {
    for thread in threads {
      let options = UInt64(CLINUX_TRACE_SYSGOOD) | UInt64(CLINUX_TRACE_SUSPEND_SECCOMP)
      try shim("PTRACE_SETOPTIONS", on: "thread \(thread.tid)") {
        clinux_ptrace_set_options(thread.tid, options)
      }
    }
  }

  /// Ends the session. Every thread continues, or stays in the stop of a signal or the freezer.
  /// Threads that have ended are reaped. A thread that isn't stopped can't be detached: it becomes
  /// one of the `Stragglers`, and this call waits for it for at most `time`.
  public func detach(waiting time: Duration = .milliseconds(50)) {
    guard !isOver else { return }
    isOver = true
    // Threads that haven't reported a stop may have one to report by now, with a signal to deliver.
    let refused =
      unstopped.sorted() + threads.map(\.tid).filter { clinux_ptrace_detach($0, 0) < 0 }
    if refused.isEmpty { return }
    // The leader comes last: it can be reaped only after all others.
    Stragglers.shared.add(
      refused.filter { $0 != pid } + refused.filter { $0 == pid }, of: pid)
    // Most of these threads are being killed. Until their tracer has reaped them, the end of their
    // process isn't reported to its parent.
    Stragglers.shared.release(within: time)
  }

  /// Whether the process still exists, for a session that stays while its process sleeps. It reaps
  /// threads that have ended, so that the process's end can be reported.
  public func isAlive() -> Bool {
    var alive = false
    for thread in threads.filter({ $0.tid != pid }) + threads.filter({ $0.tid == pid }) {
      var signal: Int32 = 0
      let stop = clinux_ptrace_poll(thread.tid, &signal)
      if stop == CLINUX_STOP_EXITED, thread.tid != pid { _ = clinux_ptrace_reap(thread.tid) }
      if stop == CLINUX_STOP_NONE || stop > 0 && stop != CLINUX_STOP_EXITED { alive = true }
    }
    return alive
  }
}
