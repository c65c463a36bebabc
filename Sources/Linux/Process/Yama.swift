import Glibc

/// Yama, a security module of many kernels (Ubuntu's, for example), limits the processes that an
/// ordinary user's process may trace. At scope 1 it may trace only its own descendants. A worker's
/// daemon is its parent. A daemon that replaces that one isn't, so it may neither trace the worker
/// nor open its memory.
public struct Yama: Hashable, Sendable {
  /// The value of `kernel.yama.ptrace_scope`; 0 if the kernel doesn't have it.
  public var scope: Int
  /// True with CAP_SYS_PTRACE: then scopes 1 and 2 don't apply.
  public var isPrivileged: Bool

  /// The state at the first use in this process.
  public static let current =
    isSimulated
    ? Yama(scope: 1, isPrivileged: false) : Yama(scope: readScope(), isPrivileged: readRight())

  /// True if a daemon that replaces this one may not trace its workers.
  public var forbidsStrangers: Bool { scope >= 3 || scope >= 1 && !isPrivileged }

  /// Whether Yama permits tracing a process.
  public func permits(_ pid: Int32) -> Bool {
    if !forbidsStrangers { return true }
    return scope == 1 && Self.isDescendant(pid)
  }

  /// True for tests on kernels without Yama: this process enforces scope 1 on itself.
  private static let isSimulated = getenv("DORMOUSE_TEST_YAMA") != nil

  /// Enforces the simulated scope. Call it before each operation that Yama would refuse.
  public static func check(_ call: String, _ pid: Int32, code: Int32 = EPERM)
    throws(SystemCallError)
  {
    if isSimulated, pid != getpid(), !isDescendant(pid) {
      throw SystemCallError(call, on: "pid \(pid) (simulated Yama)", code: code)
    }
  }

  private static func isDescendant(_ pid: Int32) -> Bool {
    var current = pid
    for _ in 0..<256 where current > 1 {
      do throws(SystemCallError) { current = try ProcessStat.read(current).parent } catch {
        return false
      }
      if current == getpid() { return true }
    }
    return false
  }

  private static func readScope() -> Int {
    do throws(SystemCallError) {
      let text = try readText("/proc/sys/kernel/yama/ptrace_scope")
      return Int(text.prefix { $0 != "\n" }) ?? 0
    } catch { return 0 }
  }

  private static func readRight() -> Bool {
    do throws(SystemCallError) {
      // Bit 19 is CAP_SYS_PTRACE.
      return try ProcessStatus.read(getpid()).effectiveCapabilities & (1 << 19) != 0
    } catch { return false }
  }
}
