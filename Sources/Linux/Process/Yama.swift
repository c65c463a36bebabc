import Glibc

/// Yama, a security module of many kernels (Ubuntu's, for example), limits the processes that an
/// ordinary user's process may trace. At scope 1 it may trace only its own descendants, and
/// processes that have permitted it (PR_SET_PTRACER). A worker's daemon is its parent. A daemon
/// that replaces that one isn't. So each worker permits its user's processes to trace it from its
/// launch on (`SpawnRequest.permitsTracing`), and a process that it has forked when its memory is
/// moved for the first time (`Injector.mapScratch`).
public struct Yama: Hashable, Sendable {
  /// The value of `kernel.yama.ptrace_scope`; 0 if the kernel doesn't have it.
  public var scope: Int
  /// True with CAP_SYS_PTRACE: then scopes 1 and 2 don't apply.
  public var isPrivileged: Bool

  /// The state at the first use in this process.
  public static let current =
    isSimulated
    ? Yama(scope: 1, isPrivileged: false) : Yama(scope: readScope(), isPrivileged: readRight())

  /// True if a process may only be traced by its ancestors, unless it permits it to others.
  public var forbidsStrangers: Bool { scope >= 3 || scope >= 1 && !isPrivileged }

  /// Whether Yama permits tracing a process.
  public func permits(_ pid: Int32) -> Bool {
    if !forbidsStrangers { return true }
    return scope == 1 && (Self.isDescendant(pid) || Self.isPermitted(by: pid))
  }

  /// For tests on kernels without Yama: this process enforces scope 1 on itself. The processes that
  /// permit tracing have files in this directory.
  private static let simulation = getenv("DORMOUSE_TEST_YAMA").map { String(cString: $0) }
  private static var isSimulated: Bool { simulation != nil }

  /// Enforces the simulated scope. Call it before each operation that Yama would refuse.
  public static func check(_ call: String, _ pid: Int32, code: Int32 = EPERM)
    throws(SystemCallError)
  {
    if isSimulated, pid != getpid(), !isDescendant(pid), !isPermitted(by: pid) {
      throw SystemCallError(call, on: "pid \(pid) (simulated Yama)", code: code)
    }
  }

  /// Records in a simulation that a process permits tracing. Returns false if this is none.
  @discardableResult
  static func simulatePermission(by pid: Int32) -> Bool {
    // Without the file, the simulation only refuses more.
    if let file = permission(of: pid) { _ = try? Descriptor.open(file, O_CREAT | O_WRONLY) }
    return isSimulated
  }

  private static func permission(of pid: Int32) -> String? {
    // A process that has ended can't be traced.
    guard let simulation, let process = try? ProcessIdentity.current(of: pid) else { return nil }
    return "\(simulation)/\(process.pid)-\(process.startTime)"
  }

  /// Whether the process permits this one to trace it. Only the kernel knows that, and a descriptor
  /// of the process's memory needs the same permission.
  private static func isPermitted(by pid: Int32) -> Bool {
    if isSimulated { return permission(of: pid).map(fileExists) ?? false }
    do throws(SystemCallError) {
      _ = try Descriptor.open("/proc/\(pid)/mem")
      return true
    } catch { return false }
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
