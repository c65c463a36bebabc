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
