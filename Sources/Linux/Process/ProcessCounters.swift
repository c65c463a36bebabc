/// The amounts that a process has written since its start, to files, pipes, sockets and eventfds
/// (proc_pid_io(5)).
public struct ProcessWrites: Hashable, Sendable {
  /// The bytes that were written (`wchar`).
  public var bytes: UInt64
  /// The number of calls that write (`syscw`).
  public var calls: UInt64
  /// The bytes in pages of files on a disk that the process has changed (`write_bytes`). Pipes and
  /// tmpfs aren't included.
  public var stored: UInt64

  public init(bytes: UInt64, calls: UInt64, stored: UInt64 = 0) {
    self.bytes = bytes
    self.calls = calls
    self.stored = stored
  }

  /// Reads the counters of a process.
  ///
  /// - Throws: EACCES or EPERM if this process may not trace the other one.
  public static func read(_ pid: Int32) throws(SystemCallError) -> ProcessWrites {
    let path = "/proc/\(pid)/io"
    let record = try readRecord(path)
    guard let bytes: UInt64 = value(of: "wchar: ", in: record)?.number(),
      let calls: UInt64 = value(of: "syscw: ", in: record)?.number()
    else { throw malformed(path) }
    // A kernel without accounting of storage (CONFIG_TASK_IO_ACCOUNTING) has no such line.
    let stored: UInt64? = value(of: "write_bytes: ", in: record)?.number()
    return ProcessWrites(bytes: bytes, calls: calls, stored: stored ?? 0)
  }
}

/// Reads the position of a process's descriptor in its file, without asking the file system. It
/// returns nil if there is no such descriptor. The position of a file that was opened for appending
/// is its end after a write.
public func filePosition(of descriptor: Int32, in pid: Int32) -> Int64? {
  // An error means that the process has ended, or that the descriptor is closed.
  guard let record = try? readRecord("/proc/\(pid)/fdinfo/\(descriptor)") else { return nil }
  return value(of: "pos:", in: record)?.number()
}

/// Returns the resident memory of a process without its pages of files, in bytes
/// (proc_pid_statm(5)). It is 0 if the process has ended, or is a kernel thread.
public func anonymousMemory(of pid: Int32) -> UInt64 {
  let (resident, files) = residentMemory(of: pid)
  return resident - min(files, resident)
}

/// Returns the resident memory of a process, and how much of it is pages of files and shared
/// memory, in bytes. Both are 0 if the process has ended, or is a kernel thread.
public func residentMemory(of pid: Int32) -> (all: UInt64, ofFiles: UInt64) {
  // A process that has ended has no memory.
  guard let words = try? readRecord("/proc/\(pid)/statm").words(), words.count > 2,
    let resident: UInt64 = words[1].number(), let shared: UInt64 = words[2].number()
  else { return (0, 0) }
  return (resident * pageSize, shared * pageSize)
}
