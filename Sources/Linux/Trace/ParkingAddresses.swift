import CLinux

extension Injector {
  /// Returns the addresses at which a borrowed thread may be after its injector's death if it
  /// doesn't have its own registers: at or after one of the two instructions.
  public static func addresses(
    vdso: MemoryMapping, memory: ProcessMemory, scratch: UInt64, pid: Int32
  ) throws(TraceError) -> Set<UInt64> {
    let first = try firstInstruction(in: vdso, of: memory, pid: pid)
    return parkingAddresses(scratch: scratch).union([
      first, first + UInt64(clinux_call_instruction_length()),
    ])
  }

  /// Returns the addresses at which a thread can be that was parked or borrowed in this scratch
  /// area.
  public static func parkingAddresses(scratch: UInt64) -> Set<UInt64> {
    let capacity = Int32(CLINUX_TRAMPOLINE_OFFSETS)
    var offsets = [UInt64](repeating: 0, count: Int(capacity))
    let count = clinux_trampoline_offsets(&offsets, capacity)
    return Set(offsets.prefix(Int(max(0, count))).map { scratch + $0 })
  }
}
