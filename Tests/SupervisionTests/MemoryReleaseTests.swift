import Glibc
import Linux
import TestSupport
import Testing

@testable import Supervision

@Suite("The memory of killed processes") struct MemoryReleaseTests {
  /// A child with 200 MB in a session of its own. Its tracer stops it when it exits
  /// (PTRACE_O_TRACEEXIT) and never continues it: it hangs in its exit, as a process that waits in
  /// the kernel does.
  private static let hangs = """
    import ctypes, os, signal, time
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
    libc.ptrace.restype = ctypes.c_long
    child = os.fork()
    if child == 0:
      os.setsid()
      memory = bytearray(os.urandom(1 << 20)) * 200
      libc.ptrace(0, 0, None, None)
      os.kill(os.getpid(), signal.SIGSTOP)
      while True: time.sleep(600)
    os.waitpid(child, 0)
    assert libc.ptrace(0x4200, child, None, 0x40) == 0
    assert libc.ptrace(7, child, None, None) == 0
    print("child", child, flush=True)
    time.sleep(600)
    """

  private static func resident(_ pid: Int32) throws -> UInt64 {
    let fields = try readText("/proc/\(pid)/statm").split(separator: " ")
    return fields.dropFirst().first.flatMap { UInt64($0) }.map { $0 * pageSize } ?? 0
  }

  @Test(.enabled(if: MemoryRelease.isAvailable, "process_mrelease needs Linux 5.15"))
  func `A killed process that hangs in its exit has given its memory back`() throws {
    let worker = try TestWorker("python3", "-c", Self.hangs)
    try worker.waitForOutput("child")
    let fields = try readText(worker.log).split(whereSeparator: \.isWhitespace)
    let pid = try #require(fields.last.flatMap { Int32($0) })
    let identity = try ProcessStat.read(pid).identity
    #expect(try Self.resident(pid) > 200 << 20)
    let killing = WorkerKilling(
      root: identity, session: pid, cgroup: nil, pidfd: try identity.openPidfd())
    try killing.perform(until: Deadline(in: .seconds(60)))
    #expect(try eventually { try Self.resident(pid) < 20 << 20 })
    #expect(identity.life == .lives, "its exit still hangs")
  }

  @Test(
    "Only the memory of killed processes is released, and processes that have ended are skipped",
    .enabled(if: MemoryRelease.isAvailable, "process_mrelease needs Linux 5.15"))
  func others() throws {
    let worker = try TestWorker("sleep", "60")
    let tree = try worker.process.tree()
    let release = MemoryRelease(of: tree, about: "test")
    #expect(release.perform() == 0, "it lives")
    #expect(worker.process.life == .lives)
    try worker.process.killAll()
    _ = try worker.waitForExit()
    #expect(release.perform() == 0, "it has ended")
  }
}
