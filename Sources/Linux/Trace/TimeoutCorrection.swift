import CLinux
import Glibc

/// The change to an interrupted call, so that it ends when it would have ended without the sleep.
enum TimeoutCorrection: Hashable {
  case nothing
  /// A register changes. The call can be replaced by another one.
  case argument(index: Int32, value: UInt64, number: Int64)
  /// The time in memory changes, at the address to which the kernel has written it itself.
  case remainder(address: UInt64, seconds: Int64, fraction: Int64)
  /// An argument points to a separate copy of the time in memory.
  case pointer(index: Int32, seconds: Int64, nanoseconds: Int64)
  /// The call ends, unless its socket is ready.
  case endUnlessReady(descriptor: Int32, isSending: Bool)

  /// Calculates the correction of a call.
  ///
  /// - Parameters:
  ///   - waited: the time in ns for which the timeout has run.
  ///   - rested: the share of `waited` in which the thread was at rest, in ns.
  ///   - limit: the timeout that the call has now, in ns.
  ///   - wroteRemainder: true if `limit` is the time that was left when the thread came to rest.
  static func of(
    _ call: WaitingCall, limit: Int64, waited: Int64, rested: Int64, wroteRemainder: Bool
  ) -> TimeoutCorrection {
    var index: Int32 = 0
    let kind = clinux_wait_of(call.number, call.arguments, &index)
    let left = max(0, limit - waited)
    // The time is rounded up, because a wait may not end early.
    let milliseconds = (left + 999_999) / 1_000_000
    switch call.again {
    case CLINUX_AGAIN_FROM_REGISTER:
      if limit == 0 { return .nothing }
      return .argument(index: index, value: UInt64(milliseconds), number: call.number)
    case CLINUX_AGAIN_AS_EPOLL_PWAIT:
      // The arguments of both calls are the same except for the time. A time over 24 days doesn't
      // fit, and isn't corrected.
      guard milliseconds <= Int64(Int32.max) else { return .nothing }
      return .argument(
        index: index, value: UInt64(milliseconds), number: clinux_number_of_epoll_pwait())
    case CLINUX_AGAIN_FROM_MEMORY: return pointer(index, left)
    case CLINUX_AGAIN_FROM_REMAINDER:
      guard wroteRemainder else { return pointer(index, left, in: kind) }
      let left = max(0, limit - rested)
      let (seconds, fraction) = split(left, in: kind)
      return .remainder(
        address: call.arguments[Int(index)], seconds: seconds, fraction: fraction)
    case CLINUX_AGAIN_FROM_SOCKET:
      guard left == 0 else { return .nothing }
      return .endUnlessReady(
        descriptor: Int32(truncatingIfNeeded: call.arguments[0]),
        isSending: kind == CLINUX_WAIT_SENDING)
    default: return .nothing
    }
  }

  private static func pointer(
    _ index: Int32, _ left: Int64, in kind: clinux_wait = CLINUX_WAIT_TIMESPEC
  ) -> TimeoutCorrection {
    let (seconds, fraction) = split(left, in: kind)
    return .pointer(index: index, seconds: seconds, nanoseconds: fraction)
  }

  /// Splits a time in ns into a timespec or a timeval. It is rounded up.
  private static func split(_ time: Int64, in kind: clinux_wait) -> (Int64, Int64) {
    let unit: Int64 = kind == CLINUX_WAIT_TIMEVAL ? 1000 : 1
    let time = (time + unit - 1) / unit
    return (time / (1_000_000_000 / unit), time % (1_000_000_000 / unit))
  }
}

extension TraceSession {
  /// Reduces the timeouts of calls that will be restarted by the time that has passed, to 0 if all
  /// of it has passed. Call it once per sleep, right before the threads continue, at an event stop.
  ///
  /// A time in a register becomes smaller. The program sees this register changed after the call,
  /// as it may be after any function call. A remainder that the kernel has written to the program's
  /// memory is replaced there by what the kernel would write now.
  ///
  /// Three calls read a whole time from memory that the program may use again (semtimedop,
  /// rt_sigtimedwait, io_getevents). select and its relatives do so as well if that memory is
  /// read-only. They get a copy of the time on their thread's stack, below the red zone: this is
  /// the memory of functions that haven't been called yet. No code can overwrite it while the
  /// thread waits. The kernel reads it when the call begins. If a signal handler runs on top of it,
  /// these calls return EINTR and don't read it again.
  ///
  /// A call whose timeout is that of its socket (SO_RCVTIMEO, SO_SNDTIMEO) can't be shortened: the
  /// time belongs to the socket, for all its users. If the call is overdue, it returns EAGAIN,
  /// unless there is data to receive or room to send. Otherwise it starts again with its whole
  /// time.
  public func correctTimeouts(_ waits: TimedWaits, memory: ProcessMemory) throws(TraceError) {
    let reader = WaitReader(pid: pid)
    for thread in threads {
      guard let call = thread.registers.interruptedCall else { continue }
      let waiting = WaitingCall(call)
      guard waiting.again != CLINUX_AGAIN_AS_IT_IS, call.keeps_its_end == 0 else { continue }
      // A receive ends with EINTR only if it has a timeout, and that EINTR has been corrected.
      if waiting.again == CLINUX_AGAIN_FROM_SOCKET, call.was_restarted == 0 { continue }
      let now = Clocks.monotonic
      guard case .relative(let limit) = reader.limit(of: waiting),
        let waited = waits.waited(thread.tid, since: now),
        let rested = waits.rested(thread.tid, since: now)
      else { continue }
      let correction = TimeoutCorrection.of(
        waiting, limit: limit, waited: waited, rested: rested,
        wroteRemainder: waiting.again == CLINUX_AGAIN_FROM_REMAINDER
          && isWritable(waiting.timeAddress))
      let changed = try apply(correction, to: thread, memory: memory, reader: reader)
      waits.didCorrect(thread.tid, now: now, call: changed)
    }
  }

  /// Applies a correction. It returns the call if it has changed.
  private func apply(
    _ correction: TimeoutCorrection, to thread: TracedThread, memory: ProcessMemory,
    reader: WaitReader
  ) throws(TraceError) -> clinux_call? {
    var registers = thread.registers
    switch correction {
    case .nothing: return nil
    case .argument(let index, let value, let number):
      clinux_registers_change_call(&registers, number, index, value)
    case .remainder(let address, let seconds, let fraction):
      try write(seconds: seconds, fraction: fraction, at: address, in: memory)
      return nil
    case .pointer(let index, let seconds, let nanoseconds):
      guard let address = registers.timeCopyAddress, isWritable(address) else { return nil }
      try write(seconds: seconds, fraction: nanoseconds, at: address, in: memory)
      clinux_registers_change_call(
        &registers, registers.interruptedCall?.number ?? -1, index, address)
    case .endUnlessReady(let descriptor, let isSending):
      guard let socket = reader.duplicate(descriptor),
        clinux_is_ready(socket.raw, isSending ? 1 : 0) == 0
      else { return nil }
      clinux_registers_end_call(&registers, Int64(-EAGAIN))
    }
    try writeRegisters(thread.tid, registers)
    return registers.interruptedCall
  }

  /// Writes to the addresses on the threads' stacks that a correction needs, so that these pages
  /// exist and are in the image. Call it before the hibernation of a worker whose pages may be
  /// missing when it is woken.
  public func prepareTimeCopies(memory: ProcessMemory) throws(TraceError) {
    for thread in threads {
      guard let call = thread.registers.interruptedCall, thread.registers.mayNeedCorrection,
        let address = thread.registers.timeCopyAddress
      else { continue }
      let waiting = WaitingCall(call)
      guard
        waiting.again == CLINUX_AGAIN_FROM_MEMORY
          || waiting.again == CLINUX_AGAIN_FROM_REMAINDER && !isWritable(waiting.timeAddress),
        // After an earlier correction the call's time is already there.
        waiting.timeAddress != address, isWritable(address)
      else { continue }
      // The values aren't 0, because the image leaves out a page of zeros.
      try write(seconds: 1, fraction: 1, at: address, in: memory)
    }
  }

  private func write(
    seconds: Int64, fraction: Int64, at address: UInt64, in memory: ProcessMemory
  ) throws(TraceError) {
    let bytes = [seconds, fraction].withUnsafeBytes { Array($0) }
    try wrap { () throws(SystemCallError) in try memory.writeBytes(bytes, at: address) }
  }

  /// Whether the process itself could write 16 bytes at the address.
  private func isWritable(_ address: UInt64?) -> Bool {
    // If the mappings can't be read, the worker isn't known to have the address.
    guard let address, let mappings = try? MemoryMapping.headers(of: pid) else { return false }
    return mappings.contains {
      $0.writable && $0.start <= address && address < $0.end && $0.end - address >= 16
    }
  }
}

extension clinux_registers {
  /// The call that is restarted when the thread continues.
  var interruptedCall: clinux_call? {
    var call = clinux_call()
    let isInCall = withUnsafePointer(to: self) { clinux_registers_call($0, &call) == 1 }
    return isInCall && call.is_made_again == 1 ? call : nil
  }

  /// The address for a time of the thread's call. It is below the 128 bytes (the red zone) that the
  /// thread's functions may use below the stack pointer.
  var timeCopyAddress: UInt64? {
    guard let call = interruptedCall, call.stack > pageSize else { return nil }
    return (call.stack - 128 - 16) & ~15
  }

  /// True if the thread waits with a timeout that may have to be corrected.
  public var mayNeedCorrection: Bool {
    guard let call = interruptedCall, call.keeps_its_end == 0 else { return false }
    let waiting = WaitingCall(call)
    switch waiting.again {
    case CLINUX_AGAIN_AS_IT_IS: return false
    case CLINUX_AGAIN_FROM_SOCKET: return call.was_restarted == 1
    case CLINUX_AGAIN_FROM_REGISTER: return waiting.limit(read: { _ in nil }) != nil
    default: return waiting.timeAddress != nil
    }
  }

  /// The pages of the words of a futex call that is made again. The kernel doesn't wait for a
  /// missing page there if the futex has priority inheritance and is private (EFAULT), and glibc
  /// then ends the program.
  public var futexPages: Set<UInt64> {
    guard let call = interruptedCall else { return [] }
    let waiting = WaitingCall(call)
    guard waiting.number == clinux_syscall_number(Int32(CLINUX_SYS_futex)) else {
      return []
    }
    return Set([waiting.arguments[0], waiting.arguments[4]].map { $0 / pageSize * pageSize })
      .subtracting([0])
  }

  /// The pages that a correction reads or writes.
  public var timePages: Set<UInt64> {
    guard let call = interruptedCall, let address = WaitingCall(call).timeAddress,
      let copyAddress = timeCopyAddress
    else { return [] }
    // The program may have any address there.
    return Set([address, address &+ 15, copyAddress].map { $0 / pageSize * pageSize })
  }
}

extension WaitingCall {
  /// The address of its time, if the kernel reads it from memory again.
  fileprivate var timeAddress: UInt64? {
    switch again {
    case CLINUX_AGAIN_AS_IT_IS, CLINUX_AGAIN_FROM_REGISTER, CLINUX_AGAIN_FROM_SOCKET: return nil
    default: break
    }
    var index: Int32 = 0
    _ = clinux_wait_of(number, arguments, &index)
    let address = arguments[Int(index)]
    return address == 0 ? nil : address
  }
}
