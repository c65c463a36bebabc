import Glibc
import Testing

@testable import Linux

@Suite("Whether a process lives") struct ProcessLifeTests {
  @Test(
    "A process that can't be asked about isn't taken for one that has ended",
    arguments: [EMFILE, ENFILE, ENOMEM, EACCES])
  func unknown(code: Int32) throws {
    let child = try TestChild("sleep", "60")
    let identity = child.process.identity
    let fault = InjectedFault(code)
    let stat = "/proc/\(child.pid)/stat"
    #expect(
      fault.during { identity.life } == .unknown(SystemCallError("open", on: stat, code: code)))
    #expect(fault.during { !identity.hasEnded && !identity.isEnding })
    #expect(throws: SystemCallError("open", on: "pidfd of \(child.pid)", code: code)) {
      try fault.during { try identity.signal(SIGKILL) }
    }
    #expect(identity.life == .lives)
  }

  @Test func `The end of a process is detected without a free descriptor`() throws {
    let child = try TestChild("sleep", "60")
    let identity = child.process.identity
    kill(child.pid, SIGKILL)
    try child.waitForExit()
    #expect(identity.hasEnded, "a zombie")
    waitpid(child.pid, nil, 0)
    #expect(InjectedFault(EMFILE).during { identity.life } == .hasEnded)
    #expect(ProcessIdentity(pid: -1, startTime: 1).hasEnded)
  }

  @Test func `A process that /proc hides, but kill(2) finds, hasn't vanished`() throws {
    let missing = SystemCallError("open", on: "/proc/PID/stat", code: ENOENT)
    #expect(!missing.unlessHidden(getpid()).meansVanished)
    let child = try TestChild("true")
    try child.waitForExit()
    waitpid(child.pid, nil, 0)
    #expect(missing.unlessHidden(child.pid).meansVanished)
  }

  @Test func `A call that a signal interrupts is no failure`() throws {
    let fault = InjectedFault(EINTR)
    #expect(fault.during { ProcessIdentity.ofThisProcess?.life } == .lives)
    #expect(fault.subjects.isEmpty == false)
  }

  @Test("A wake gets a descriptor of the reserve when none is free, and no other thread does")
  func reserve() throws {
    DescriptorReserve.fill()
    let fault = InjectedFault(EMFILE, at: 0..<1)
    #expect(throws: SystemCallError("open", on: "/dev/null", code: EMFILE)) {
      try fault.during { _ = try Descriptor.open("/dev/null") }
    }
    let again = InjectedFault(EMFILE, at: 0..<1)
    try again.during {
      try DescriptorReserve.use { () throws(SystemCallError) in
        _ = try Descriptor.open("/dev/null")
      }
    }
    #expect(again.subjects.count >= 2)
    #expect(DescriptorReserve.size(limit: 48) == 1 && DescriptorReserve.size(limit: 1 << 20) == 16)
  }
}

extension ProcessIdentity {
  fileprivate static var ofThisProcess: ProcessIdentity? { try? .current(of: getpid()) }
}
