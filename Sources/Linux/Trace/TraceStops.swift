import CLinux
import Glibc

/// The stops of a traced thread, and the operations that are possible in them.
extension TraceSession {
  /// A function that is called on the tracing thread, perhaps several times, while it has to wait
  /// for a thread that doesn't stop: another program has frozen it (`docker pause`), say. The wait
  /// may take days: other threads must not wait for this one.
  @TaskLocal public static var frozenCall: FrozenCall?

  /// A struct for the function. A task-local value that is itself a function crashes if Swift 6.3
  /// optimizes (it has no type there).
  public struct FrozenCall: Sendable {
    let call: @Sendable () -> Void

    public init(_ call: @escaping @Sendable () -> Void) { self.call = call }
  }

  /// Lists the thread IDs of a process in ascending order.
  public static func threadIDs(of pid: Int32) throws(SystemCallError) -> [Int32] {
    do throws(SystemCallError) { return try Linux.threads(of: pid).sorted() } catch {
      throw SystemCallError(
        error.call, on: error.subject, code: error.meansVanished ? ESRCH : error.code)
    }
  }

  // MARK: stops

  func hasEnded(_ tid: Int32) -> Bool {
    do throws(SystemCallError) {
      return try ProcessStat.read(thread: tid, of: pid).state.isEnded
    } catch { return error.meansVanished }
  }

  private func isUninterruptible(_ tid: Int32) -> Bool { state(of: tid) == .uninterruptible }

  /// Returns the state of a thread; nil if it can't be read.
  private func state(of tid: Int32) -> ProcessStat.State? {
    do throws(SystemCallError) {
      return try ProcessStat.read(thread: tid, of: pid).state
    } catch { return nil }
  }

  /// Whether a thread that was to stop may do so later: it waits for a processor, or in the
  /// kernel, or has just stopped.
  private func mayStillStop(_ tid: Int32) -> Bool {
    switch state(of: tid) {
    case .running, .uninterruptible, .traced: true
    default: ForeignFreeze.holds(pid)
    }
  }

  func poll(_ tid: Int32) throws(TraceError) -> (stop: Int, signal: Int32) {
    var signal: Int32 = 0
    let stop = try request("waitid", of: tid) { clinux_ptrace_poll(tid, &signal) }
    if Int(stop) == CLINUX_STOP_EXITED { throw .vanished(pid: pid) }
    return (Int(stop), signal)
  }

  /// Waits for the next stop of a thread that has another program's registers. It must not be left
  /// to run with them. So if another program has frozen it, the wait lasts until it is thawed: only
  /// then can the tracer restore its registers. If the injected call waits for a disk, the wait
  /// lasts until that answers; if the thread gets no processor (`cpu.max`, a busy machine, a
  /// virtual machine that was paused), until it gets one.
  func nextStop(ofBorrowed tid: Int32, doing: String) throws(TraceError) -> (
    stop: Int, signal: Int32
  ) {
    while true {
      do throws(TraceError) { return try nextStop(tid, doing: doing) } catch {
        guard case .unresponsive = error, mayStillStop(tid) else { throw error }
        Self.frozenCall?.call()
      }
    }
  }

  /// Waits for the next stop of a thread. It polls without a pause first, because most stops come
  /// within microseconds.
  ///
  /// - Parameter deadline: used if it is earlier than the end of `stopTimeout`.
  func nextStop(
    _ tid: Int32, doing: String, until deadline: Deadline? = nil
  ) throws(TraceError) -> (stop: Int, signal: Int32) {
    let began = Clocks.monotonic
    let deadline = min(began + Self.stopTimeout, deadline?.nanoseconds ?? .max)
    var turns = 0
    while true {
      let report = try poll(tid)
      if report.stop != CLINUX_STOP_NONE { return report }
      turns += 1
      if turns > 50 {
        // A group's first thread reports its end only after all others are reaped.
        if turns % 16 == 0, hasEnded(tid) { throw .vanished(pid: pid) }
        // The thread may have entered vfork(2) just before the request to stop. Other work waits
        // for this tracing thread, so the wait ends.
        if turns % 64 == 0, Clocks.monotonic - began > 500_000_000, isUninterruptible(tid) {
          throw .unresponsive(thread: tid, doing: doing)
        }
        var pause = timespec(tv_sec: 0, tv_nsec: turns > 500 ? 500_000 : 20_000)
        nanosleep(&pause, nil)
      } else {
        sched_yield()
      }
      if Clocks.monotonic > deadline { throw .unresponsive(thread: tid, doing: doing) }
    }
  }

  /// Waits for PTRACE_EVENT_STOP, and continues the thread from any other stop before it. Only at
  /// an event stop do the registers determine how an interrupted system call continues.
  func waitForEventStop(
    _ tid: Int32, doing: String, until deadline: Deadline? = nil, isBorrowed: Bool = false
  ) throws(TraceError) {
    while true {
      let report =
        try isBorrowed
        ? nextStop(ofBorrowed: tid, doing: doing) : nextStop(tid, doing: doing, until: deadline)
      if report.stop == CLINUX_STOP_EVENT { return }
      // A stop signal is already in force, and is dropped. Any other signal is the program's own.
      let deliver =
        report.stop == CLINUX_STOP_SIGNAL && report.signal != SIGSTOP && report.signal != SIGTRAP
      try request("PTRACE_CONT", of: tid) {
        clinux_ptrace_continue(tid, deliver ? report.signal : 0)
      }
    }
  }

  // MARK: registers

  func readRegisters(_ tid: Int32) throws(TraceError) -> clinux_registers {
    var registers = clinux_registers()
    try request("PTRACE_GETREGSET", of: tid) { clinux_ptrace_get_registers(tid, &registers) }
    return registers
  }

  func writeRegisters(_ tid: Int32, _ registers: clinux_registers) throws(TraceError) {
    var registers = registers
    try request("PTRACE_SETREGSET", of: tid) { clinux_ptrace_set_registers(tid, &registers) }
  }

  func setSignalMask(_ tid: Int32, _ mask: UInt64) throws(TraceError) {
    try request("PTRACE_SETSIGMASK", of: tid) { clinux_ptrace_set_signal_mask(tid, mask) }
  }

  /// Makes a request of ptrace(2) about a thread.
  @discardableResult
  func request(_ name: String, of tid: Int32, _ body: () -> Int32) throws(TraceError) -> Int32 {
    try wrap { () throws(SystemCallError) in try shim(name, on: "thread \(tid)", body) }
  }

  @discardableResult
  func wrap<Value>(_ body: () throws(SystemCallError) -> Value) throws(TraceError) -> Value {
    do throws(SystemCallError) { return try body() } catch { throw .from(error, pid: pid) }
  }
}

extension clinux_registers {
  /// The register words in use, for storing.
  public var storedWords: [UInt64] {
    withUnsafeBytes(of: words) { bytes in
      Array(bytes.bindMemory(to: UInt64.self).prefix(Int(length) / 8))
    }
  }

  /// Restores registers from stored words. The result is `nil` if there are more than this
  /// architecture has.
  public init?(storedWords stored: [UInt64]) {
    guard stored.count <= Int(CLINUX_REGISTER_WORDS) else { return nil }
    self.init()
    length = UInt64(stored.count * 8)
    withUnsafeMutableBytes(of: &words) { bytes in
      stored.withUnsafeBytes { bytes.copyMemory(from: $0) }
    }
  }

  /// Whether both are the same state of a program.
  public func isLike(_ other: clinux_registers) -> Bool {
    withUnsafePointer(to: self) { one in
      withUnsafePointer(to: other) { clinux_registers_are_like(one, $0) == 1 }
    }
  }

  /// The address of the next instruction.
  public var instruction: UInt64 {
    withUnsafePointer(to: self) { clinux_registers_instruction($0) }
  }

  /// True for a thread that the kernel has made for io_uring. It never runs code of the program, so
  /// it has no instruction. Its other registers may be those of the call that started it.
  var areOfKernel: Bool { instruction == 0 }

  /// True for the first thread of a forked child before its first instruction.
  public var isNewborn: Bool {
    withUnsafePointer(to: self) { clinux_registers_newborn($0) == 1 }
  }

  /// The pages of the thread's control block that C libraries use for themselves: its ID, its
  /// robust mutexes, its rseq area.
  public var threadBlock: Set<UInt64> {
    var (start, length) = (UInt64(0), UInt64(0))
    withUnsafePointer(to: self) { clinux_registers_thread_block($0, &start, &length) }
    let (end, overflows) = start.addingReportingOverflow(length)
    if start == 0 || overflows { return [] }
    return [start / pageSize * pageSize, (end - 1) / pageSize * pageSize]
  }

  /// True if the thread was stopped inside a system call.
  public var isInSystemCall: Bool {
    withUnsafePointer(to: self) { clinux_registers_in_syscall($0) == 1 }
  }
}
