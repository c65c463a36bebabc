import CLinux
import Glibc

/// Makes a stopped process perform system calls.
///
/// The order of the steps is important, because the daemon may be killed between any two of them:
/// - Only a thread that is *inside* a system call is used. Moving the instruction pointer of one
///   that runs its own code could break a restartable sequence (rseq(2)).
/// - The first call (mmap of a scratch area) is made from a system call instruction of the vdso.
///   Live code follows that instruction. So all other calls are made from the scratch area, where a
///   jump to itself follows the instruction: if the daemon dies, the thread loops there until the
///   pending SIGSTOP stops it again, and it accesses none of its memory.
/// - At the end the thread is brought to an event stop, and gets its own registers back only there:
///   only at an event stop does the kernel use them to finish an interrupted call.
/// - All signals are masked meanwhile, so that no handler runs on the borrowed registers.
///
/// All methods must be called on the thread that traces the process.
public struct Injector {
  let session: TraceSession
  let memory: ProcessMemory
  private var thread: TracedThread
  private var instruction: UInt64
  /// The address of the instruction in the vdso; `nil` if it isn't known.
  private var vdsoInstruction: UInt64?
  /// The scratch area, once it is mapped.
  public private(set) var scratch: PageRange?

  /// The number of ranges for which the scratch area has room in one call.
  public static let rangesPerCall = 1024
  /// The maximum number of bytes in one call. It is a multiple of every page size. The kernel
  /// accepts at most 2 GiB less one page in a call (MAX_RW_COUNT).
  public static let bytesPerCall = UInt64(1) << 30
  static let rangesOffset = UInt64(CLINUX_TRAMPOLINE_LENGTH)

  /// Borrows a waiting thread of the session.
  ///
  /// - Throws: `TraceError.busy` if every thread runs code of its own.
  public init(
    session: TraceSession, memory: ProcessMemory, vdso: MemoryMapping
  ) throws(TraceError) {
    guard let thread = session.borrowable else { throw .busy(pid: session.pid) }
    self.session = session
    self.memory = memory
    self.thread = thread
    instruction = try Self.firstInstruction(in: vdso, of: memory, pid: session.pid)
    vdsoInstruction = instruction
    try session.setSignalMask(thread.tid, ~0)
  }

  /// Continues in the scratch area of an earlier injector, to unmap it. If that injector has
  /// unmapped it already but hasn't seen the thread stop in time, only the thread's registers have
  /// to be restored.
  ///
  /// - Parameter tid: the thread to borrow; nil: any that waits.
  public init(
    session: TraceSession, memory: ProcessMemory, leftBehind scratch: PageRange,
    borrowing tid: Int32? = nil
  ) throws(TraceError) {
    let chosen = tid.map { tid in session.threads.first { $0.tid == tid && $0.isWaiting } }
    guard let thread = chosen ?? session.borrowable else { throw .busy(pid: session.pid) }
    self.session = session
    self.memory = memory
    self.thread = thread
    self.scratch = scratch
    instruction = scratch.address
    vdsoInstruction = Self.vdsoInstruction(of: session.pid, memory)
    // The other injector may have died after it mapped the area and before it filled it.
    do throws(TraceError) { try writeTrampoline(to: scratch.address) } catch {
      guard Self.isFree(scratch, in: session.pid) else { throw error }
      self.scratch = nil
      return
    }
    // The registers are written before the mask: a recovery recognizes a borrowed thread by its
    // address, but it couldn't distinguish a borrowed thread that has its own registers and a
    // foreign mask from a thread that has run.
    var registers = thread.registers
    clinux_registers_park(&registers, scratch.address, 1)
    try session.writeRegisters(thread.tid, registers)
    try session.setSignalMask(thread.tid, ~0)
  }

  /// Whether no mapping of a stopped process overlaps these pages.
  private static func isFree(_ range: PageRange, in pid: Int32) -> Bool {
    // If the mappings can't be read, the pages aren't known to be free.
    guard let mappings = try? MemoryMapping.headers(of: pid) else { return false }
    return !mappings.contains { $0.range.intersects(range) }
  }

  /// The length of the scratch area in bytes.
  public static var scratchLength: UInt64 {
    let bytes = rangesOffset + UInt64(rangesPerCall * 16)
    return (bytes + pageSize - 1) / pageSize * pageSize
  }

  /// Finds the first system call instruction in the vdso.
  static func firstInstruction(
    in vdso: MemoryMapping, of memory: ProcessMemory, pid: Int32
  ) throws(TraceError) -> UInt64 {
    do throws(SystemCallError) {
      let code = try memory.readBytes(at: vdso.start, count: Int(vdso.length))
      let offset = try shim("find a syscall instruction", on: "vdso of pid \(pid)") {
        clinux_find_syscall_instruction(code, Int64(code.count))
      }
      return vdso.start + UInt64(offset)
    } catch { throw .from(error, pid: pid) }
  }

  /// Returns the address of the vdso's instruction if `leaveCall` needs it.
  private static func vdsoInstruction(of pid: Int32, _ memory: ProcessMemory) -> UInt64? {
    guard clinux_stop_hides_calls() == 1 else { return nil }
    // Without the address, a handler may not end the thread's own call, and a timeout may begin
    // again.
    let vdso = (try? MemoryMapping.headers(of: pid))?.first { $0.name == "[vdso]" }
    // A failure has the consequence described above.
    return vdso.flatMap { try? firstInstruction(in: $0, of: memory, pid: pid) }
  }

  /// Maps the scratch area at `address`, which must be free. It is readable and executable, never
  /// writable. The injector writes to it through /proc/PID/mem, so this works also for a worker
  /// that denies itself writable code (PR_SET_MDWE).
  ///
  /// - Parameter permitsTracing: true makes the process permit every process of its user to trace
  ///   it (PR_SET_PTRACER_ANY), until its end: Yama would forbid it to a later daemon.
  public mutating func mapScratch(
    at address: UInt64, permitsTracing: Bool = false
  ) throws(TraceError) {
    let length = Self.scratchLength
    let flags = MAP_PRIVATE | MAP_ANONYMOUS | 0x100000  // MAP_FIXED_NOREPLACE
    let result = try call(
      CLINUX_SYS_mmap,
      [address, length, UInt64(PROT_READ | PROT_EXEC), UInt64(flags), UInt64.max, 0])
    guard result >= 0 else {
      throw .injected("mmap", pid: session.pid, code: Int32(truncatingIfNeeded: -result))
    }
    scratch = PageRange(address: UInt64(result), length: length)

    try writeTrampoline(to: UInt64(result))
    instruction = UInt64(result)
    guard permitsTracing else { return }
    let permission = try call(
      CLINUX_SYS_prctl, [UInt64(CLINUX_PR_SET_PTRACER), UInt64.max, 0, 0, 0, 0])
    if !Yama.simulatePermission(by: session.pid) { _ = try checked("prctl", permission) }
  }

  private func writeTrampoline(to address: UInt64) throws(TraceError) {
    let capacity = Int32(CLINUX_TRAMPOLINE_LENGTH)
    var code = [UInt8](repeating: 0, count: Int(capacity))
    let size = clinux_write_syscall_trampoline(&code, capacity)
    try write(Array(code[..<Int(size)]), at: address)
  }

  /// Parks every other thread in the scratch area, which stays mapped. If such a thread is
  /// continued, it waits there and accesses no memory of the program. `finishParked` parks the
  /// borrowed thread. The threads' own registers stay in `session.threads`.
  ///
  /// - Parameter spins: true: a parked thread loops instead of making a system call, which the
  ///   program's seccomp filter may forbid.
  public func parkOthers(spins: Bool) throws(TraceError) {
    for other in session.threads where other.tid != thread.tid { try park(other, spins: spins) }
  }

  private func park(_ parked: TracedThread, spins: Bool) throws(TraceError) {
    guard let scratch, !parked.registers.areOfKernel else { return }
    var registers = parked.registers
    clinux_registers_park(&registers, scratch.address, spins ? 1 : 0)
    // The registers are written before the mask: a recovery recognizes a parked thread by its
    // address.
    try session.writeRegisters(parked.tid, registers)
    try session.setSignalMask(parked.tid, ~0)
  }

  /// Brings the borrowed thread to an event stop and parks it, too. The scratch area stays mapped.
  public mutating func finishParked(spins: Bool) throws(TraceError) {
    try bringToEventStop()
    try park(thread, spins: spins)
  }

  /// Unmaps the scratch area and restores the thread exactly as it was.
  public mutating func finish() throws(TraceError) {
    if let scratch {
      // The thread's next instruction is in an unmapped page. It is never executed: the event stop
      // below comes first.
      _ = try call(CLINUX_SYS_munmap, [scratch.address, scratch.length, 0, 0, 0, 0])
      self.scratch = nil
    }
    try bringToEventStop()
    try session.restore(thread)
  }

  /// On arm64, the kernel doesn't show how the thread's own call continues. This makes the kernel
  /// decide that again on the way to the event stop (`clinux_registers_leave_call`). The last
  /// injected call has the first argument of the thread's own call, which the kernel then restores.
  private mutating func leaveCall() throws(TraceError) {
    var registers = thread.registers
    var ownCall = clinux_call()
    guard let vdsoInstruction, clinux_registers_leave_call(&registers) == 1,
      clinux_registers_call(&thread.registers, &ownCall) == 1
    else { return }
    instruction = vdsoInstruction
    _ = try call(CLINUX_SYS_getpid, [ownCall.arguments.0, 0, 0, 0, 0, 0])
    try session.writeRegisters(thread.tid, registers)
  }

  private mutating func bringToEventStop() throws(TraceError) {
    try leaveCall()
    try session.request("PTRACE_INTERRUPT", of: thread.tid) { clinux_ptrace_interrupt(thread.tid) }
    try session.request("PTRACE_CONT", of: thread.tid) { clinux_ptrace_continue(thread.tid, 0) }
    try session.waitForEventStop(
      thread.tid, doing: "coming back from an injected call", isBorrowed: true)
  }

  func call(_ which: Int, _ arguments: [UInt64]) throws(TraceError) -> Int64 {
    try call(number: clinux_syscall_number(Int32(which)), arguments)
  }

  func call(number: Int64, _ arguments: [UInt64]) throws(TraceError) -> Int64 {
    var registers = thread.registers
    clinux_registers_prepare_call(&registers, instruction, number, arguments)
    try session.writeRegisters(thread.tid, registers)
    try runToSystemCallStop()  // entry
    try runToSystemCallStop()  // exit
    return clinux_registers_result_of(try session.readRegisters(thread.tid))
  }

  private func runToSystemCallStop() throws(TraceError) {
    while true {
      try session.request("PTRACE_SYSCALL", of: thread.tid) {
        clinux_ptrace_continue_to_syscall(thread.tid, 0)
      }
      let report = try session.nextStop(
        ofBorrowed: thread.tid, doing: "performing an injected call")
      if report.stop == CLINUX_STOP_SYSCALL { return }
      // This is a second SIGSTOP, or a group stop. It isn't delivered, and the loop continues.
    }
  }

  /// Writes text into the scratch area, for an injected call to read. It returns the text's
  /// address.
  func writeToScratch(_ text: String) throws(TraceError) -> UInt64? {
    guard let scratch else { return nil }
    try write(Array(text.utf8) + [0], at: scratch.address + Self.rangesOffset)
    return scratch.address + Self.rangesOffset
  }

  func write(_ bytes: [UInt8], at address: UInt64) throws(TraceError) {
    try session.wrap { () throws(SystemCallError) in try memory.writeBytes(bytes, at: address) }
  }
}

private func clinux_registers_result_of(_ registers: clinux_registers) -> Int64 {
  withUnsafePointer(to: registers) { clinux_registers_result($0) }
}
