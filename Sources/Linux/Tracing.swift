import CLinux
import Glibc

/// What can go wrong while a process is traced.
public enum TraceError: Error, Sendable, CustomStringConvertible {
  /// The process, or one of its threads, has ended.
  case vanished(pid: Int32)
  /// A thread didn't stop in time: it is in uninterruptible sleep, or the machine is overloaded.
  case unresponsive(thread: Int32, doing: String)
  /// No thread of the process waits in a system call: it is busy.
  case busy(pid: Int32)
  case call(SystemCallError)
  /// An injected system call failed in the process.
  case injected(String, pid: Int32, code: Int32)

  public var description: String {
    switch self {
    case .vanished(let pid): "process \(pid) has ended"
    case .unresponsive(let thread, let doing): "thread \(thread) did not stop in time (\(doing))"
    case .busy(let pid): "process \(pid) is busy: none of its threads waits in a system call"
    case .call(let error): error.description
    case .injected(let call, let pid, let code):
      "\(call) inside process \(pid): \(String(cString: strerror(code)))"
    }
  }

  static func from(_ error: SystemCallError, pid: Int32) -> TraceError {
    error.code == ESRCH || error.code == ECHILD ? .vanished(pid: pid) : .call(error)
  }
}

/// One thread that is stopped under our control.
public struct TracedThread: Sendable {
  public let tid: Int32
  /// As the program must find them again.
  public var registers: clinux_registers
  public var signalMask: UInt64
  /// It was stopped inside a system call, and so may be borrowed. Its registers alone don't tell:
  /// a call that will be made again leaves them as if it hadn't been made yet.
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

  /// Same registers, same mask.
  public func isLike(_ other: TracedThread) -> Bool {
    signalMask == other.signalMask && registers.storedWords == other.registers.storedWords
  }
}

/// All threads of one process, seized and stopped. Made and used on one thread only (ptrace(2)), and
/// ended by `detach()`.
public final class TraceSession {
  public let pid: Int32
  public private(set) var threads: [TracedThread] = []
  private var isOver = false

  /// Time given to a thread to report a stop.
  static let patience: Int64 = 5_000_000_000

  private init(pid: Int32) { self.pid = pid }

  deinit {
    // Threads left seized would hang for ever at their next stop.
    precondition(isOver, "a trace session of pid \(pid) was dropped without detach()")
  }

  /// Seizes every thread until no new one appears. The process should have been stopped before
  /// (SIGSTOP): then the kernel stops it again by itself if we die.
  ///
  /// - Parameter only: leaves all other threads alone.
  public static func seize(
    pid: Int32, only: Set<Int32>? = nil
  ) throws(TraceError) -> TraceSession {
    let session = TraceSession(pid: pid)
    do throws(TraceError) {
      while try session.seizeNewThreads(only: only) {}
      for index in session.threads.indices { try session.save(index) }
      return session
    } catch {
      session.detach()
      throw error
    }
  }

  private func seizeNewThreads(only: Set<Int32>?) throws(TraceError) -> Bool {
    let known = Set(threads.map(\.tid))
    let found = try wrap { () throws(SystemCallError) in try Self.threadIDs(of: pid) }
    let new = found.filter { !known.contains($0) && only?.contains($0) != false }
    for tid in new {
      do throws(SystemCallError) {
        try shim("PTRACE_SEIZE", on: "thread \(tid)") {
          clinux_ptrace_seize(tid, UInt64(CLINUX_TRACE_SYSGOOD))
        }
      } catch {
        // One that has just ended is refused with EPERM.
        throw hasEnded(tid) ? .vanished(pid: pid) : .from(error, pid: pid)
      }
      threads.append(TracedThread(tid: tid))
      try wrap { () throws(SystemCallError) in
        try shim("PTRACE_INTERRUPT", on: "thread \(tid)") { clinux_ptrace_interrupt(tid) }
      }
    }
    for tid in new { try waitForEventStop(tid, doing: "seizing") }
    return !new.isEmpty
  }

  private func save(_ index: Int) throws(TraceError) {
    let tid = threads[index].tid
    threads[index].registers = try readRegisters(tid)
    threads[index].isWaiting = threads[index].registers.isInSystemCall
    var mask: UInt64 = 0
    try wrap { () throws(SystemCallError) in
      try shim("PTRACE_GETSIGMASK", on: "thread \(tid)") {
        clinux_ptrace_get_signal_mask(tid, &mask)
      }
    }
    threads[index].signalMask = mask
  }

  /// A stop makes some blocked calls return EINTR although no signal handler will run. Where that
  /// has happened, the call is made again instead when the thread goes on, unless a signal that came
  /// meanwhile calls a handler: the program notices no more than it would have awake.
  public func mendInterruptedCalls() throws(TraceError) {
    for index in threads.indices {
      if clinux_registers_mend_interrupted(&threads[index].registers) == 1 {
        try writeRegisters(threads[index].tid, threads[index].registers)
      }
    }
  }

  /// Puts registers and mask (back) into a stopped thread.
  public func restore(_ thread: TracedThread) throws(TraceError) {
    try writeRegisters(thread.tid, thread.registers)
    try setSignalMask(thread.tid, thread.signalMask)
  }

  /// Makes an earlier session's threads this one's: who differs gets those registers and that mask,
  /// here, at an event stop.
  /// - Throws: also where the threads aren't the same ones.
  public func adopt(_ earlier: [TracedThread]) throws(TraceError) {
    for thread in earlier {
      guard let index = threads.firstIndex(where: { $0.tid == thread.tid }) else {
        throw .vanished(pid: pid)
      }
      if !threads[index].isLike(thread) { try restore(thread) }
    }
    threads = earlier
  }

  /// Lets seccomp filters pass everything while the session lasts (PTRACE_O_SUSPEND_SECCOMP).
  public func suspendSeccomp() throws(SystemCallError) {
    for thread in threads {
      let options = UInt64(CLINUX_TRACE_SYSGOOD) | UInt64(CLINUX_TRACE_SUSPEND_SECCOMP)
      try shim("PTRACE_SETOPTIONS", on: "thread \(thread.tid)") {
        clinux_ptrace_set_options(thread.tid, options)
      }
    }
  }

  /// Ends the session: every thread goes on, or stays in the stop that a signal or the freezer has
  /// it in. Threads that have ended are buried.
  public func detach() {
    guard !isOver else { return }
    isOver = true
    let refused = threads.filter { clinux_ptrace_detach($0.tid, 0) < 0 }
    // The leader last: it can be buried only after all others.
    let leader = refused.filter { $0.tid == pid && Self.isSomebodyElsesChild(pid) }
    for thread in refused.filter({ $0.tid != pid }) + leader { Self.letGo(thread.tid) }
  }

  /// A thread refuses to be detached when it isn't stopped: it is being killed. Until its tracer has
  /// buried it, its process's end is reported to nobody, so this waits for it to get that far.
  private static func letGo(_ tid: Int32) {
    let deadline = Clocks.monotonic + 1_000_000_000
    while clinux_ptrace_bury(tid) == 0, clinux_ptrace_detach(tid, 0) < 0,
      Clocks.monotonic < deadline
    {
      var pause = timespec(tv_sec: 0, tv_nsec: 100_000)
      nanosleep(&pause, nil)
    }
  }

  /// The end of our own child is for our event loop to see; anybody else's has to be handed on by
  /// its tracer.
  private static func isSomebodyElsesChild(_ pid: Int32) -> Bool {
    guard let stat = try? ProcessStat.read(pid) else { return false }
    return stat.parent != getpid()
  }

  /// For a session that stays while its process sleeps: whether the process still exists. Buries
  /// threads that have ended, so that the process's end can be reported.
  public func isAlive() -> Bool {
    var alive = false
    for thread in threads.filter({ $0.tid != pid }) + threads.filter({ $0.tid == pid }) {
      var signal: Int32 = 0
      let stop = clinux_ptrace_poll(thread.tid, &signal)
      if stop == CLINUX_STOP_EXITED, thread.tid != pid { _ = clinux_ptrace_bury(thread.tid) }
      if stop == CLINUX_STOP_NONE || stop > 0 && stop != CLINUX_STOP_EXITED { alive = true }
    }
    return alive
  }
}

extension TraceSession {
  /// The thread ids of a process.
  public static func threadIDs(of pid: Int32) throws(SystemCallError) -> [Int32] {
    do throws(SystemCallError) { return try Linux.threads(of: pid).sorted() } catch {
      throw SystemCallError(
        error.call, on: error.subject, code: error.meansVanished ? ESRCH : error.code)
    }
  }
}
