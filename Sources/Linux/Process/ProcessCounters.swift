/// What a process has written since its start, to files, pipes, sockets and eventfds (proc_pid_io(5)).
public struct ProcessWrites: Hashable, Sendable {
  /// `wchar`
  public var bytes: UInt64
  /// `syscw`
  public var calls: UInt64

  public init(bytes: UInt64, calls: UInt64) {
    self.bytes = bytes
    self.calls = calls
  }

  /// It needs the permission to trace the process; without it the call fails with EACCES or EPERM.
  public static func read(_ pid: Int32) throws(SystemCallError) -> ProcessWrites {
    let path = "/proc/\(pid)/io"
    let record = try readRecord(path)
    guard let bytes: UInt64 = value(of: "wchar: ", in: record)?.number(),
      let calls: UInt64 = value(of: "syscw: ", in: record)?.number()
    else { throw malformed(path) }
    return ProcessWrites(bytes: bytes, calls: calls)
  }
}

/// Resident memory of a process less its pages of files, in bytes (proc_pid_statm(5)); 0: the process has ended, or it is
/// a kernel thread.
public func anonymousMemory(of pid: Int32) -> UInt64 {
  let (resident, files) = residentMemory(of: pid)
  return resident - min(files, resident)
}

/// Resident memory of a process, and how much of it is pages of files and shared memory, in bytes; 0 as above.
public func residentMemory(of pid: Int32) -> (all: UInt64, ofFiles: UInt64) {
  // A process that has ended has no memory.
  guard let words = try? readRecord("/proc/\(pid)/statm").words(), words.count > 2,
    let resident: UInt64 = words[1].number(), let shared: UInt64 = words[2].number()
  else { return (0, 0) }
  return (resident * pageSize, shared * pageSize)
}
