import CLinux
import Glibc
import TestSupport
import Testing

@testable import Linux

@Suite("Injected calls that are repeated") struct InjectionRepeatTests {
  /// On an overloaded machine the end of the munmap isn't seen within the tracer's timeout.
  @Test("A thread is restored although an earlier attempt has unmapped the scratch area")
  func unmappedBefore() throws {
    let child = try TestChild("sleep", "658")
    #expect(try eventually { try child.sleeps })
    let session = try TraceSession.seize(child.process.identity)
    let memory = try ProcessMemory(pid: child.pid)
    let vdso = try MemoryMapping.headers(of: child.pid).first { $0.name == "[vdso]" }
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
    #expect(try eventually { try child.sleeps })
  }

  /// Another process of its user can write to the memory from which such a number is read.
  @Test("A negative number of a descriptor is an error of the injected call")
  func negativeNumber() throws {
    let child = try TestChild("sleep", "659")
    #expect(try eventually { try child.sleeps })
    let session = try TraceSession.seize(child.process.identity)
    let memory = try ProcessMemory(pid: child.pid)
    let vdso = try MemoryMapping.headers(of: child.pid).first { $0.name == "[vdso]" }
    var injector = try Injector(session: session, memory: memory, vdso: try #require(vdso))
    for call in ["close", "fcntl"] {
      let error = #expect(throws: TraceError.self) {
        if call == "close" {
          try injector.closeDescriptor(-1)
        } else {
          _ = try injector.moveAway(-1)
        }
      }
      #expect(error?.description == "\(call) inside process \(child.pid): \(errorText(EBADF))")
    }
    try injector.finish()
    session.detach()
    #expect(try eventually { try child.sleeps })
  }

  /// A thread with foreign registers that is left to run is lost to its program.
  @Test("A tracer waits for a borrowed thread that runs for longer than threads need to stop")
  func lateStop() throws {
    let child = try TestChild("sh", "-c", "while :; do :; done")
    let pid = child.pid
    #expect(try eventually { try ProcessStat.read(pid).name == "sh" })
    let session = try TraceSession.seize(child.process.identity)
    defer { session.detach() }
    try session.request("PTRACE_CONT", of: pid) { clinux_ptrace_continue(pid, 0) }
    let stop = TraceSession.FrozenCall { sendSignal(SIGSTOP, to: pid) }
    let report = try TraceSession.$frozenCall.withValue(stop) {
      try session.nextStop(ofBorrowed: pid, doing: "running its own loop")
    }
    #expect(report.stop == CLINUX_STOP_SIGNAL && report.signal == SIGSTOP)
  }
}
