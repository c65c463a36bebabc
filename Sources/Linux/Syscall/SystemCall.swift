import CLinux
import Glibc

/// A failed system call: its name, its subject, and the kernel's reason.
public struct SystemCallError: Error, Hashable, Sendable, CustomStringConvertible {
  public let call: String
  public let subject: String
  /// The error number as in errno(3).
  public let code: Int32

  public init(_ call: String, on subject: String, code: Int32) {
    self.call = call
    self.subject = subject
    self.code = code
  }

  public var description: String { "\(call) \(subject): \(reason)" }

  /// The C library's text for the code.
  public var reason: String { errorText(code) }
}

/// The C library's text for an error number, as strerror(3) returns it.
public func errorText(_ code: Int32) -> String { String(cString: strerror(code)) }

/// Performs a system call that sets `errno`. All such calls use this function: it repeats the call
/// on EINTR, and reads `errno` before any other code can change it.
public func systemCall<Result: SignedInteger>(
  _ name: String, on subject: @autoclosure () -> String = "", _ body: () -> Result
) throws(SystemCallError) -> Result {
  try shim(name, on: subject()) { kernelResult(body) }
}

/// Performs a system call that has a path as its argument, and repeats it on EINTR. Swift frees the
/// C string that it makes of a `String` argument before the next statement, and that may change
/// `errno`. This function reads `errno` before.
@discardableResult
public func systemCall<Result: SignedInteger>(
  _ name: String, path: String, _ body: (UnsafePointer<CChar>) -> Result
) throws(SystemCallError) -> Result {
  try shim(name, on: path) { kernelResult(path, body) }
}

/// Performs a call with a path that returns a pointer, or NULL if it fails. It isn't repeated on
/// EINTR.
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

/// Returns the result of a call, or its error as a negative number, as the shims of `CLinux` do. It
/// doesn't repeat an interrupted call.
public func kernelResult<Result: SignedInteger>(_ body: () -> Result) -> Result {
  let result = body()
  return result < 0 ? Result(-errno) : result
}

/// Returns the result of a call that has a path as its argument, or its error as a negative number.
public func kernelResult<Result: SignedInteger>(
  _ path: String, _ body: (UnsafePointer<CChar>) -> Result
) -> Result {
  path.withCString { text in kernelResult { body(text) } }
}

/// True if the kernel reports that there is no file of that name. False if that can't be known, for
/// example because a directory of the path can't be searched.
public func isAbsent(_ path: String) -> Bool {
  kernelResult(path) { access($0, F_OK) } == -ENOENT
}

/// Renames a file with rename(2). A file at `target` is replaced.
public func renameFile(_ path: String, to target: String) throws(SystemCallError) {
  let result = path.withCString { from in kernelResult(target) { rename(from, $0) } }
  try shim("rename", on: path) { result }
}

/// Waits without limit for the end of one child and reaps it (waitpid(2)). It returns the child's
/// status, or nil if it isn't a child of this process.
@discardableResult
public func waitForChild(_ pid: Int32) -> Int32? {
  var status: Int32 = 0
  while true {
    let result = kernelResult { waitpid(pid, &status, 0) }
    if result != -EINTR { return result < 0 ? nil : status }
  }
}

/// Reaps a child of this process if it has ended, so its status can't be read again. It returns
/// true if the child has ended or isn't a child any more. It never waits.
public func reapIfEnded(_ pid: Int32) -> Bool { waitpid(pid, nil, WNOHANG) != 0 }

/// Sends a signal with kill(2). It returns 0, or the error as a negative number. A negative `pid`
/// means a process group. The signal 0 only checks whether a signal may be sent.
@discardableResult
public func sendSignal(_ signal: Int32, to pid: Int32) -> Int32 {
  kernelResult { kill(pid, signal) }
}

/// Reads the next entry of a directory with readdir(3); nil at its end.
func nextEntry(
  of directory: OpaquePointer, at path: String
) throws(SystemCallError) -> UnsafeMutablePointer<dirent>? {
  errno = 0
  if let entry = readdir(directory) { return entry }
  let code = errno
  if code == 0 { return nil }
  throw SystemCallError("readdir", on: path, code: code)
}

/// Performs a shim of `CLinux`, which returns `-errno` if it fails, and repeats it on EINTR.
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

/// The kernel's clocks, in nanoseconds.
public enum Clocks {
  /// The number of page faults of the calling thread that had to read from a disk.
  public static var majorFaults: Int64 { clinux_major_faults() }

  /// CLOCK_BOOTTIME, which also counts while the machine sleeps.
  public static var boottime: Int64 { clinux_boottime() }
  /// CLOCK_MONOTONIC, which doesn't count while the machine sleeps.
  public static var monotonic: Int64 { clinux_monotonic() }
  /// CLOCK_REALTIME: nanoseconds since 1970, if the machine's clock is right.
  public static var realtime: Int64 {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    return Int64(now.tv_sec) * 1_000_000_000 + Int64(now.tv_nsec)
  }
  /// The processor time that this process has used, in nanoseconds.
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
    // The variable is for tests of code that accesses no other process's memory.
    return getenv("DORMOUSE_TEST_PAGE_SIZE").flatMap { UInt64(String(cString: $0)) } ?? size
  #else
    return size
  #endif
}()
