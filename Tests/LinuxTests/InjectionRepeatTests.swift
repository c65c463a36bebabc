import CLinux
import Glibc
import TestSupport
import Testing

@testable import Linux

@Suite("Injected calls that are repeated") struct InjectionRepeatTests {
  /// On an overloaded machine the end of the munmap isn't seen within the tracer's timeout.
  @Test("A thread is restored although an earlier attempt has unmapped the scratch area")
  func unmappedBefore() throws {
    let null = try Descriptor.open("/dev/null", O_RDWR)
    let child = try spawn(
      SpawnRequest(
        path: "/bin/sleep", arguments: ["sleep", "658"], environment: [:], directory: "/",
        input: null.raw, output: null.raw, error: null.raw))
    defer {
      kill(child.pid, SIGKILL)
      while waitpid(child.pid, nil, 0) < 0, errno == EINTR {}
    }
    let sleeps = {
      let stat = try ProcessStat.read(child.pid)
      return stat.name == "sleep" && stat.state == .sleeping
    }
    #expect(try eventually(sleeps))
    let session = try TraceSession.seize(child.identity)
    let memory = try ProcessMemory(pid: child.pid)
    let vdso = try readFile("/proc/\(child.pid)/maps").lines().lazy
      .compactMap { MemoryMapping(header: $0) }.first { $0.name == "[vdso]" }
    let scratch = PageRange(address: 0x10_0000_0000, length: Injector.scratchLength)
    var first = try Injector(session: session, memory: memory, vdso: try #require(vdso))
    try first.mapScratch(at: scratch.address)
    try first.finishParked(spins: true)

    let second = try Injector(session: session, memory: memory, leftBehind: scratch)
    _ = try second.call(CLINUX_SYS_munmap, [scratch.address, scratch.length, 0, 0, 0, 0])

    var third = try Injector(session: session, memory: memory, leftBehind: scratch)
    try third.finish()
    for thread in session.threads { try session.restore(thread) }
    session.detach()
    #expect(try eventually(sleeps))
  }
}
