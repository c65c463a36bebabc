import CLinux
import Glibc

/// A failed system call: its name, its subject, and the kernel's reason.
public struct SystemCallError: Error, Hashable, Sendable, CustomStringConvertible {
  public let call: String
  public let subject: String
  /// As in errno(3).
  public let code: Int32

  public init(_ call: String, on subject: String, code: Int32) {
    self.call = call
    self.subject = subject
    self.code = code
  }

  public var description: String { "\(call) \(subject): \(reason)" }

  /// The C library's text for the code.
  public var reason: String { String(cString: strerror(code)) }
}

/// All system calls that set `errno` use this function: it repeats on EINTR, and reads `errno` before any
/// other code can change it.
public func systemCall<Result: SignedInteger>(
  _ name: String, on subject: @autoclosure () -> String = "", _ body: () -> Result
) throws(SystemCallError) -> Result {
  while true {
    let result = body()
    if result >= 0 { return result }
    let code = errno
    if code != EINTR { throw SystemCallError(name, on: subject(), code: code) }
  }
}

/// The same for a call that takes a path. Swift frees the C string that it makes of a `String` argument
/// before the next statement, and may change `errno` by that: here `errno` is read before.
@discardableResult
public func systemCall<Result: SignedInteger>(
  _ name: String, path: String, _ body: (UnsafePointer<CChar>) -> Result
) throws(SystemCallError) -> Result {
  try shim(name, on: path) { kernelResult(path, body) }
}

/// The same for a call that returns a pointer, or NULL if it fails.
public func pointerCall<Pointer>(
  _ name: String, path: String, _ body: (UnsafePointer<CChar>) -> Pointer?
) throws(SystemCallError) -> Pointer {
  let (pointer, code) = path.withCString { text in
    let pointer = body(text)
    return (pointer, errno)
  }
  guard let pointer else { throw SystemCallError(name, on: path, code: code) }
  return pointer
}

/// The result of a call, or its error as a negative number, as the shims of `CLinux` return it. It doesn't
/// repeat an interrupted call.
public func kernelResult<Result: SignedInteger>(_ body: () -> Result) -> Result {
  let result = body()
  return result < 0 ? Result(-errno) : result
}

/// The same for a call that takes a path.
public func kernelResult<Result: SignedInteger>(
  _ path: String, _ body: (UnsafePointer<CChar>) -> Result
) -> Result {
  path.withCString { text in kernelResult { body(text) } }
}

/// True if the kernel reports that there is no file of that name. False if that isn't known, for example
/// because a directory of the path can't be searched.
public func isAbsent(_ path: String) -> Bool {
  kernelResult(path) { access($0, F_OK) } == -ENOENT
}

/// rename(2).
public func renameFile(_ path: String, to target: String) throws(SystemCallError) {
  let result = path.withCString { from in kernelResult(target) { rename(from, $0) } }
  try shim("rename", on: path) { result }
}

/// waitpid(2) for one child, repeated when a signal interrupts it: its status, or nil if it isn't a child of
/// this process.
@discardableResult
public func waitForChild(_ pid: Int32) -> Int32? {
  var status: Int32 = 0
  while true {
    let result = kernelResult { waitpid(pid, &status, 0) }
    if result != -EINTR { return result < 0 ? nil : status }
  }
}

/// Whether a child of this process has ended, or isn't a child any more. The call reaps the child, so its
/// status can't be read again.
public func reapIfEnded(_ pid: Int32) -> Bool { waitpid(pid, nil, WNOHANG) != 0 }

/// kill(2): 0, or the error as a negative number. A negative `pid` means a process group. The signal 0 only
/// checks whether a signal may be sent.
@discardableResult
public func sendSignal(_ signal: Int32, to pid: Int32) -> Int32 {
  kernelResult { kill(pid, signal) }
}

/// readdir(3): the next entry, or nil at the end of the directory.
func nextEntry(
  of directory: OpaquePointer, at path: String
) throws(SystemCallError) -> UnsafeMutablePointer<dirent>? {
  errno = 0
  if let entry = readdir(directory) { return entry }
  let code = errno
  if code == 0 { return nil }
  throw SystemCallError("readdir", on: path, code: code)
}

/// The same for shims of `CLinux`, which return `-errno`.
@discardableResult
public func shim<Result: SignedInteger>(
  _ name: String, on subject: @autoclosure () -> String = "", _ body: () -> Result
) throws(SystemCallError) -> Result {
  while true {
    let result = body()
    if result >= 0 { return result }
    let code = Int32(truncatingIfNeeded: -result)
    if code != EINTR { throw SystemCallError(name, on: subject(), code: code) }
  }
}

/// Clocks, in nanoseconds.
public enum Clocks {
  /// Page faults of the calling thread that had to read from a disk.
  public static var majorFaults: Int64 { clinux_major_faults() }

  /// CLOCK_BOOTTIME: counts through the machine's sleep.
  public static var boottime: Int64 { clinux_boottime() }
  public static var monotonic: Int64 { clinux_monotonic() }
  /// CLOCK_REALTIME: nanoseconds since 1970, if the machine's clock is right.
  public static var realtime: Int64 {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    return Int64(now.tv_sec) * 1_000_000_000 + Int64(now.tv_nsec)
  }
  /// Processor time that this process has used, in nanoseconds.
  public static var processorTime: Int64 {
    var used = timespec()
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used)
    return Int64(used.tv_sec) * 1_000_000_000 + Int64(used.tv_nsec)
  }
}

/// The size of a page, in bytes.
public let pageSize: UInt64 = {
  let size = UInt64(sysconf(Int32(_SC_PAGESIZE)))
  #if DEBUG
    // For tests of code that touches no other process's memory.
    return getenv("DORMOUSE_TEST_PAGE_SIZE").flatMap { UInt64(String(cString: $0)) } ?? size
  #else
    return size
  #endif
}()
