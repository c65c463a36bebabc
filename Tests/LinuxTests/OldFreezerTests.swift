import CLinux
import Glibc
import Synchronization
import TestSupport
import Testing

@testable import Linux

/// The reasons why the freezer of cgroup version 1 isn't used (docs/doctor.md). If the first
/// test fails on a later kernel, that decision can be changed.
@Suite(
  "The freezer of cgroup version 1", .serialized,
  .enabled(if: OldFreezerMount.isUsable, "there is none, or we may not make groups in it"))
struct OldFreezerTests {
  @Test(arguments: [false, true])
  func `SIGKILL doesn't end a process that cgroup version 1 has frozen`(wasStopped: Bool) throws {
    try withFrozen(stopped: wasStopped) { child, thaw in
      try shim("pidfd_send_signal") { clinux_pidfd_send_signal(child.process.pidfd.raw, SIGKILL) }
      let ended = try pollDescriptor(
        child.process.pidfd.raw, for: POLLIN, until: Deadline(in: .milliseconds(300)))
      #expect(!ended)
      if !wasStopped {
        let identity = child.process.identity
        #expect(identity.life == .lives && identity.isEnding)
      }
      try thaw()
      try child.waitForExit()
    }
  }

  @Test func `A tracer that waits for a thread frozen in an injected call reports that`() throws {
    try withFrozen { child, thaw in
      try thaw()
      try #require(try eventually { try child.sleeps })
      let session = try TraceSession.seize(child.process.identity)
      defer { session.detach() }
      let vdso = try MemoryMapping.headers(of: child.pid).first { $0.name == "[vdso]" }
      var injector = try Injector(
        session: session, memory: ProcessMemory(pid: child.pid), vdso: try #require(vdso))
      try writeControl("\(Self.group)/freezer.state", "FROZEN")
      let calls = Calls()
      let thaw = TraceSession.FrozenCall {
        calls.count.add(1, ordering: .relaxed)
        // If it can't be thawed here, it is thawed at the end of the test.
        try? writeControl("\(Self.group)/freezer.state", "THAWED")
      }
      let result = try TraceSession.$frozenCall.withValue(thaw) {
        try injector.call(CLINUX_SYS_getpid, [0, 0, 0, 0, 0, 0])
      }
      #expect(result == Int64(child.pid) && calls.count.load(ordering: .relaxed) > 0)
      try injector.finish()
    }
  }

  private final class Calls: Sendable { let count = Atomic(0) }

  private static let group = "\(OldFreezer.mountPoint() ?? "")/dormouse-tests-\(getpid())"

  private func withFrozen(
    stopped: Bool = false, _ body: (TestChild, () throws -> Void) throws -> Void
  ) throws {
    let group = Self.group
    #expect(mkdir(group, 0o755) == 0)
    let child = try TestChild("sleep", "657")
    let state = "\(group)/freezer.state"
    func thaw() throws { try writeControl(state, "THAWED") }
    defer {
      try? thaw()
      kill(child.pid, SIGKILL)
      waitpid(child.pid, nil, 0)
      // A group stays busy for a moment after its last process has left.
      _ = waitUntil(Deadline(in: .seconds(60))) { () throws(Never) in rmdir(group) == 0 }
    }
    try writeControl("\(group)/cgroup.procs", "\(child.pid)")
    if stopped { kill(child.pid, SIGSTOP) }
    try writeControl(state, "FROZEN")
    #expect(try eventually { try readText(state) == "FROZEN\n" })
    try body(child, thaw)
  }
}

private enum OldFreezerMount {
  static let isUsable = {
    guard let mountPoint = OldFreezer.mountPoint() else { return false }
    let path = "\(mountPoint)/dormouse-probe-\(getpid())"
    guard mkdir(path, 0o755) == 0 else { return false }
    rmdir(path)
    return true
  }()
}
