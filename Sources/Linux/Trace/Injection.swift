import CLinux
import Glibc

/// Makes a stopped process perform system calls.
///
/// The order of the steps is important, because the daemon may be killed between any two of them:
/// - Only a thread that is *inside* a system call is used. Moving the instruction pointer of one
///   that runs its own code could break a restartable sequence (rseq(2)).
/// - The first call (mmap of a scratch area) is made from a system call instruction of the vdso. Live code
///   follows that instruction. So all other calls are made from the scratch area, where a jump to itself follows
///   the instruction: if the daemon dies, the thread loops there until the pending SIGSTOP stops it
///   again, and its memory isn't touched.
/// - At the end the thread is brought to an event stop, and gets its own registers back only there: only at
///   an event stop does the kernel use them to finish an interrupted call.
/// - All signals are masked meanwhile, so that no handler runs on the borrowed registers.
public struct Injector {
  let session: TraceSession
  let memory: ProcessMemory
  private var thread: TracedThread
  private var instruction: UInt64
  /// The vdso's; `nil`: not known.
  private var vdsoInstruction: UInt64?
  /// Address and length of the scratch area, once mapped.
  public private(set) var scratch: PageRange?

  /// Room in the scratch area for the ranges of one call.
  public static let rangesPerCall = 1024
  /// A whole number of pages of each size. The kernel takes at most 2 GiB less one page in a call (MAX_RW_COUNT).
  public static let bytesPerCall = UInt64(1) << 30
  private static let rangesOffset = UInt64(CLINUX_TRAMPOLINE_LENGTH)

  /// - Throws: `TraceError.busy` if every thread runs code of its own.
  public init(
    session: TraceSession, memory: ProcessMemory, vdso: MemoryMapping
  ) throws(TraceError) {
    guard let thread = session.threads.first(where: \.isWaiting) else {
      throw .busy(pid: session.pid)
    }
    self.session = session
    self.memory = memory
    self.thread = thread
    instruction = try Self.firstInstruction(in: vdso, of: memory, pid: session.pid)
    vdsoInstruction = instruction
    try session.setSignalMask(thread.tid, ~0)
  }

  /// Continues in the scratch area of an earlier injector, to unmap it. If that one has unmapped it, and hasn't seen the
  /// thread stop in time, only the thread is left to be given back.
  public init(
    session: TraceSession, memory: ProcessMemory, leftBehind scratch: PageRange
  ) throws(TraceError) {
    guard let thread = session.threads.first(where: \.isWaiting) else {
      throw .busy(pid: session.pid)
    }
    self.session = session
    self.memory = memory
    self.thread = thread
    self.scratch = scratch
    instruction = scratch.address
    vdsoInstruction = Self.vdsoInstruction(of: session.pid, memory)
    // The other injector may have died between mapping the area and filling it.
    do throws(TraceError) { try writeTrampoline(to: scratch.address) } catch {
      guard Self.isFree(scratch, in: session.pid) else { throw error }
      self.scratch = nil
      return
    }
    // Registers before the mask: a recovery knows a borrowed thread by its address, but it couldn't distinguish its
    // own registers with a foreign mask from those of a thread that has run.
    var registers = thread.registers
    clinux_registers_park(&registers, scratch.address, 1)
    try session.writeRegisters(thread.tid, registers)
    try session.setSignalMask(thread.tid, ~0)
  }

  /// No mapping of a stopped process has anything of these pages.
  private static func isFree(_ range: PageRange, in pid: Int32) -> Bool {
    // What can't be read isn't known to be free.
    guard let maps = try? readFile("/proc/\(pid)/maps"), !maps.isEmpty else { return false }
    return !maps.lines().lazy.compactMap { MemoryMapping(header: $0) }.contains {
      $0.start < range.address + range.length && $0.start + $0.length > range.address
    }
  }

  /// Bytes of the scratch area.
  public static var scratchLength: UInt64 {
    let bytes = rangesOffset + UInt64(rangesPerCall * 16)
    return (bytes + pageSize - 1) / pageSize * pageSize
  }

  /// The addresses at which a borrowed thread may be after its injector's death, if it doesn't have its own
  /// registers: at or after one of the two instructions.
  public static func addresses(
    vdso: MemoryMapping, memory: ProcessMemory, scratch: UInt64, pid: Int32
  ) throws(TraceError) -> Set<UInt64> {
    let first = try firstInstruction(in: vdso, of: memory, pid: pid)
    return parkingAddresses(scratch: scratch).union([
      first, first + UInt64(clinux_call_instruction_length()),
    ])
  }

  /// The addresses at which a thread can be that was parked or borrowed in this scratch area.
  public static func parkingAddresses(scratch: UInt64) -> Set<UInt64> {
    let most = Int32(CLINUX_TRAMPOLINE_OFFSETS)
    var offsets = [UInt64](repeating: 0, count: Int(most))
    let count = clinux_trampoline_offsets(&offsets, most)
    return Set(offsets.prefix(Int(max(0, count))).map { scratch + $0 })
  }

  private static func firstInstruction(
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

  /// Where `leaveCall` needs it.
  private static func vdsoInstruction(of pid: Int32, _ memory: ProcessMemory) -> UInt64? {
    guard clinux_stop_hides_calls() == 1 else { return nil }
    // Without it a handler may not end the thread's own call, and a time-out may begin again.
    let mappings = (try? readFile("/proc/\(pid)/maps")) ?? []
    let vdso = mappings.lines().lazy.compactMap { MemoryMapping(header: $0) }
      .first { $0.name == "[vdso]" }
    // As above.
    return vdso.flatMap { try? firstInstruction(in: $0, of: memory, pid: pid) }
  }

  /// Maps the scratch area at `address`, which must be free. It is readable and executable, never writable:
  /// the injector writes to it through /proc/PID/mem, so this works also for a worker that denies itself
  /// writable code (PR_SET_MDWE).
  public mutating func mapScratch(at address: UInt64) throws(TraceError) {
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
  }

  private func writeTrampoline(to address: UInt64) throws(TraceError) {
    let most = Int32(CLINUX_TRAMPOLINE_LENGTH)
    var code = [UInt8](repeating: 0, count: Int(most))
    let size = clinux_write_syscall_trampoline(&code, most)
    try write(Array(code[..<Int(size)]), at: address)
  }

  /// What the kernel is to do with pages.
  public enum Advice: Sendable {
    /// They are freed: MADV_DONTNEED.
    case free
    /// They count as unused, and don't share a huge page with pages outside of the range: MADV_COLD.
    case coolAlone

    fileprivate var code: UInt64 { self == .free ? UInt64(MADV_DONTNEED) : 20 }
  }

  /// Gives the kernel an advice about pages. Returns the bytes for which it was taken: fewer than requested means that the
  /// kernel stopped at a range for which it refuses it.
  public mutating func advise(
    _ advice: Advice, _ ranges: [PageRange], inOneCall: Bool
  ) throws(TraceError) -> UInt64 {
    guard let scratch else { return 0 }
    guard inOneCall else {
      var done: UInt64 = 0
      for range in ranges {
        let result = try call(
          CLINUX_SYS_madvise, [range.address, range.length, advice.code, 0, 0, 0])
        if result != 0 { break }
        done += range.length
      }
      return done
    }
    let table = ranges.withUnsafeBytes { Array($0) }
    try write(table, at: scratch.address + Self.rangesOffset)
    let pidfdSelf = UInt64(bitPattern: -10000)
    let result = try call(
      CLINUX_SYS_process_madvise,
      [pidfdSelf, scratch.address + Self.rangesOffset, UInt64(ranges.count), advice.code, 0, 0])
    return result < 0 ? 0 : UInt64(result)
  }

  /// Parks every other thread in the scratch area, which stays mapped: if it is continued, it waits
  /// there and touches no memory of the program. `finishParked` parks the borrowed thread.
  /// The threads' own registers stay in `session.threads`.
  ///
  /// - Parameter spins: the program's seccomp filter may forbid a waiting thread's system call.
  public func parkOthers(spins: Bool) throws(TraceError) {
    for other in session.threads where other.tid != thread.tid { try park(other, spins: spins) }
  }

  private func park(_ parked: TracedThread, spins: Bool) throws(TraceError) {
    guard let scratch else { return }
    var registers = parked.registers
    clinux_registers_park(&registers, scratch.address, spins ? 1 : 0)
    // Registers before the mask: a recovery knows a parked thread by its address.
    try session.writeRegisters(parked.tid, registers)
    try session.setSignalMask(parked.tid, ~0)
  }

  /// Brings the borrowed thread to an event stop and parks it, too. The scratch area stays mapped.
  public mutating func finishParked(spins: Bool) throws(TraceError) {
    try bringToEventStop()
    try park(thread, spins: spins)
  }

  /// Unmaps the scratch area and gives the thread back exactly as it was.
  public mutating func finish() throws(TraceError) {
    if let scratch {
      // The thread's next instruction is in an unmapped page. It never executes it: the event stop below
      // comes first.
      _ = try call(CLINUX_SYS_munmap, [scratch.address, scratch.length, 0, 0, 0, 0])
      self.scratch = nil
    }
    try bringToEventStop()
    try session.restore(thread)
  }

  /// Where the kernel keeps to itself how the thread's own call continues, this makes it decide that again, on the
  /// way to the event stop (`clinux_registers_leave_call`). The last injected call has the first argument of the
  /// thread's own call, which the kernel then puts back.
  private mutating func leaveCall() throws(TraceError) {
    var registers = thread.registers
    var own = clinux_call()
    guard let vdsoInstruction, clinux_registers_leave_call(&registers) == 1,
      clinux_registers_call(&thread.registers, &own) == 1
    else { return }
    instruction = vdsoInstruction
    _ = try call(CLINUX_SYS_getpid, [own.arguments.0, 0, 0, 0, 0, 0])
    try session.writeRegisters(thread.tid, registers)
  }

  private mutating func bringToEventStop() throws(TraceError) {
    try leaveCall()
    try session.wrap { () throws(SystemCallError) in
      try shim("PTRACE_INTERRUPT", on: "thread \(thread.tid)") {
        clinux_ptrace_interrupt(thread.tid)
      }
      try shim("PTRACE_CONT", on: "thread \(thread.tid)") { clinux_ptrace_continue(thread.tid, 0) }
    }
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
      try session.wrap { () throws(SystemCallError) in
        try shim("PTRACE_SYSCALL", on: "thread \(thread.tid)") {
          clinux_ptrace_continue_to_syscall(thread.tid, 0)
        }
      }
      let report = try session.nextStop(
        ofBorrowed: thread.tid, doing: "performing an injected call")
      if report.stop == CLINUX_STOP_SYSCALL { return }
      // A second SIGSTOP, or a group stop: it isn't delivered, and the loop continues.
    }
  }

  /// Writes text into the scratch area, for an injected call to read. Returns its address.
  func place(_ text: String) throws(TraceError) -> UInt64? {
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
