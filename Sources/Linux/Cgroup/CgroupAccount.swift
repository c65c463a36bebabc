/// The kernel's counts for a group and all groups below it. A value is `nil` if the kernel doesn't
/// count it, or if the group lacks the controller for it.
public struct CgroupAccount: Hashable, Sendable {
  /// The processor time of all processes that are or were in the group, in microseconds
  /// (`cpu.stat`).
  public var cpuMicroseconds: UInt64?
  /// The memory that is charged to the group in bytes, including file pages and the kernel's own
  /// memory (`memory.current`).
  public var memory: Int64?
  /// The highest value of `memory` so far (`memory.peak`, Linux 5.19).
  public var memoryPeak: Int64?
  /// The number of processes and threads (`pids.current`).
  public var tasks: Int?
  /// The time that the group's tasks waited for memory. `cpuStall` and `inputOutputStall` are the
  /// times for the processor and for I/O.
  public var memoryStall: PressureStall?
  public var cpuStall: PressureStall?
  public var inputOutputStall: PressureStall?

  init() {}
}

extension WorkerCgroup {
  /// Reads the counts of the group.
  public func account() -> CgroupAccount {
    var account = CgroupAccount()
    account.cpuMicroseconds = cpuMicroseconds()
    account.memory = number("memory.current")
    account.memoryPeak = number("memory.peak")
    account.tasks = number("pids.current").map { Int($0) }
    // A kernel without pressure stall information (CONFIG_PSI) has no such files.
    account.memoryStall = try? PressureStall.read("\(path)/memory.pressure")
    account.cpuStall = try? PressureStall.read("\(path)/cpu.pressure")
    // This file may be missing for the same reason.
    account.inputOutputStall = try? PressureStall.read("\(path)/io.pressure")
    return account
  }

  /// Reads the processor time alone, in microseconds. It never falls, and it includes children that
  /// started and ended between two readings.
  public func cpuMicroseconds() -> UInt64? {
    guard let bytes = try? readRecord("\(path)/cpu.stat") else { return nil }
    return Self.cpuMicroseconds(in: bytes)
  }

  static func cpuMicroseconds(in bytes: [UInt8]) -> UInt64? {
    value(of: "usage_usec ", in: bytes)?.number()
  }

  private func number(_ file: String) -> Int64? {
    // An error means that the controller isn't enabled.
    guard let bytes = try? readFile("\(path)/\(file)") else { return nil }
    return bytes.lines().first?.number()
  }
}
