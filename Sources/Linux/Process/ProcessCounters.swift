/// Bytes that a process has written since its start, to files, pipes and sockets (`wchar` of proc_pid_io(5)).
///
/// It needs the permission to trace the process; without it the call fails with EACCES or EPERM.
public func writtenBytes(of pid: Int32) throws(SystemCallError) -> UInt64 {
  let path = "/proc/\(pid)/io"
  guard let bytes: UInt64 = value(of: "wchar: ", in: try readRecord(path))?.number() else {
    throw malformed(path)
  }
  return bytes
}

/// Resident memory of a process less its pages of files, in bytes (proc_pid_statm(5)); 0: the process has ended, or it is
/// a kernel thread.
public func anonymousMemory(of pid: Int32) -> UInt64 {
  // A process that has ended has no memory.
  guard let words = try? readRecord("/proc/\(pid)/statm").words(), words.count > 2,
    let resident: UInt64 = words[1].number(), let shared: UInt64 = words[2].number(),
    resident >= shared
  else { return 0 }
  return (resident - shared) * pageSize
}
