import CLinux
import Glibc

/// A system call that failed: which, on what, and the kernel's reason.
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

  /// What the code means, in the C library's words.
  public var reason: String { String(cString: strerror(code)) }
}

/// The one funnel for system calls that set `errno`: repeats on EINTR, and takes `errno` before
/// anything else can change it.
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
  /// CLOCK_BOOTTIME: counts through the machine's sleep.
  public static var boottime: Int64 { clinux_boottime() }
  public static var monotonic: Int64 { clinux_monotonic() }
}

/// The size of a page, in bytes.
public let pageSize: UInt64 = UInt64(sysconf(Int32(_SC_PAGESIZE)))
