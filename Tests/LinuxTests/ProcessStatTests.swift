import Glibc
import TestSupport
import Testing

@testable import Linux

@Suite struct ProcessStatTests {
  /// Makes a stat line with this name, for a process with pid 7, parent 3, session 5, started at
  /// tick 99.
  static func line(name: String) -> [UInt8] {
    let after = "S 3 4 5 0 -1 4194560 1 2 3 4 11 22 0 0 20 0 6 0 99 1000 200 "
    let middle = (25...47).map { _ in "0" }.joined(separator: " ")
    return Array("7 (\(name)) \(after)\(middle) 4096 8192 12288 16384 0\n".utf8)
  }

  @Test(arguments: [
    "bash", "a) R 1 (b", ")", "(", "", ") S 1 1 1", "new\nline", "tab\tand  blanks", "ümlaut",
  ])
  func `A hostile process name changes no other field of its stat line`(name: String) throws {
    let stat = try #require(ProcessStat(parsing: Self.line(name: name)))
    #expect(stat.name == name)
    #expect(stat.pid == 7)
    #expect(stat.parent == 3)
    #expect(stat.processGroup == 4)
    #expect(stat.session == 5)
    #expect(stat.state == .sleeping)
    #expect(stat.cpuTicks == 33)
    #expect(stat.threadCount == 6)
    #expect(stat.startTime == 99)
    #expect(stat.arguments == 4096..<8192)
    #expect(stat.environment == 12288..<16384)
  }

  @Test(arguments: ["", "7", "7 (a", "7 a) S", "7 (a) S 1 2", "x (a) S 1 2 3", ")("])
  func `A text that isn't a stat line gives nil`(text: String) {
    #expect(ProcessStat(parsing: Array(text.utf8)) == nil)
  }

  @Test func `A process's own stat entry agrees with the system calls`() throws {
    let stat = try ProcessStat.read(getpid())
    #expect(stat.pid == getpid())
    #expect(stat.parent == getppid())
    #expect(stat.session == getsid(0))
    #expect(stat.identity.life == .lives)
    #expect(stat.arguments.count > 0)
    #expect(try threads(of: getpid()).contains(getpid()))
  }

  @Test func `A real process may choose any name`() throws {
    let child = try TestChild(
      "python3", "-c",
      """
      import ctypes, sys, time
      ctypes.CDLL(None).prctl(15, b'a) R 1 (b\\n', 0, 0, 0)
      print('named', flush=True)
      time.sleep(60)
      """)
    #expect(try child.line() == "named")
    let stat = try ProcessStat.read(child.pid)
    #expect(stat.name == "a) R 1 (b\n")
    #expect(stat.parent == getpid())
    #expect(stat.session == child.pid)
  }

  @Test func `A process whose first thread has ended isn't ending while another thread runs`()
    throws
  {
    let child = try TestChild(
      "python3", "-c",
      """
      import ctypes, threading, time
      threading.Thread(target=lambda: (print('here', flush=True), time.sleep(60))).start()
      ctypes.CDLL(None).pthread_exit(0)
      """)
    #expect(try child.line() == "here")
    #expect(
      try eventually {
        let stat = try ProcessStat.read(child.pid)
        return stat.state == .zombie && stat.threadCount == 2 && stat.isExiting
      })
    #expect(!child.process.identity.isEnding && child.process.identity.life == .lives)
    kill(child.pid, SIGKILL)
    #expect(try eventually { child.process.identity.isEnding })
  }

  @Test
  func `An ended process isn't alive, and a process that reuses its pid isn't mistaken for it`()
    throws
  {
    let child = try TestChild("sleep", "60")
    #expect(child.process.identity.life == .lives)
    let other = ProcessIdentity(pid: child.pid, startTime: child.process.startTime + 1)
    #expect(other.hasEnded)
    #expect(throws: SystemCallError("pidfd_open", on: "pid \(child.pid)", code: ESRCH)) {
      try other.openPidfd()
    }
    kill(child.pid, SIGKILL)
    try child.waitForExit()
    // The child isn't reaped yet, so it is a zombie.
    #expect(child.process.identity.hasEnded && child.process.identity.isEnding)
  }
}

@Suite struct ProcessStatusTests {
  @Test func `Waiting signals that aren't ignored are found without parsing the other fields`() {
    let text = """
      Name:\tSigPnd: ff
      Uid:\t1000\t1001\t1002\t1003
      SigQ:\t21/96365
      SigPnd:\t0000000000000001
      ShdPnd:\t0000000000005000
      SigBlk:\t0000000000010000
      SigIgn:\t0000000000001000
      """
    #expect(
      WaitingSignals(parsing: Array(text.utf8))
        == WaitingSignals(unheeded: 0x4001, counted: 21, user: 1000))
    let none = WaitingSignals(unheeded: 0, counted: nil)
    #expect(WaitingSignals(parsing: Array("Name:\ta\n".utf8)) == none)
    #expect(WaitingSignals(parsing: []) == none)
  }

  @Test func `The kernel counts a signal that waits for a stopped process, of the process's user`()
    throws
  {
    let (receiver, other) = (try TestChild("sleep", "60"), try TestChild("sleep", "60"))
    kill(receiver.pid, SIGSTOP)
    #expect(try eventually { try ProcessStat.read(receiver.pid).state == .stopped })
    #expect(try WaitingSignals.read(receiver.pid).user == getuid())
    kill(receiver.pid, SIGUSR1)
    #expect(try WaitingSignals.read(receiver.pid).unheeded == 1 << UInt64(SIGUSR1 - 1))
    // Other processes of this user get signals too, so two reads may differ.
    #expect(
      try eventually {
        let (here, there) = (
          try WaitingSignals.read(receiver.pid).counted, try WaitingSignals.read(other.pid).counted
        )
        return here == there && here.map { $0 > 0 } == true
      })
  }

  @Test func `A value ends at the end of its line, and its key begins a line`() {
    let bytes = Array("a: 1\nba: 2\nb:\t 3 kB\nempty:\nlast: x".utf8)
    func text(_ key: StaticString) -> String? {
      value(of: key, in: bytes).map { String(decoding: $0, as: UTF8.self) }
    }
    #expect(text("a:") == "1")
    #expect(text("b:") == "3 kB")
    #expect(text("empty:") == "")
    #expect(text("last:") == "x")
    #expect(text("ast:") == nil)
    #expect(text("missing:") == nil)
  }

  @Test func `Signal masks, ids and sizes are read from a status file`() {
    let text = """
      Name:\ta
      Tgid:\t12
      TracerPid:\t34
      Uid:\t1000\t0\t0\t0
      NSpid:\t12\t1
      VmLck:\t       8 kB
      VmSwap:\t      16 kB
      SigPnd:\t0000000000000001
      ShdPnd:\t0000000000000200
      SigBlk:\t0000000000010000
      SigIgn:\t0000000000001000
      SigCgt:\t8000000000000a00
      Seccomp:\t2
      """
    let status = ProcessStatus(parsing: Array(text.utf8))
    #expect(status.threadGroup == 12)
    #expect(status.tracer == 34)
    #expect(status.user == 1000)
    #expect(status.namespacePids == [12, 1])
    #expect(status.lockedBytes == 8192)
    #expect(status.hasHandledSignal, "signal 10 is pending and caught")
    var other = status
    other.blocked |= 0x200
    #expect(!other.hasHandledSignal, "it is blocked")
    other = status
    other.caught = 0x800
    #expect(!other.hasHandledSignal, "it has no handler")
    #expect(status.swappedBytes == 16384)
    #expect(ProcessStatus.contains(status.pendingForThread, SIGHUP))
    #expect(ProcessStatus.contains(status.pendingForProcess, SIGUSR1))
    #expect(ProcessStatus.contains(status.blocked, SIGCHLD))
    #expect(ProcessStatus.contains(status.ignored, SIGPIPE))
    #expect(status.catches(SIGUSR1))
    #expect(status.catches(SIGUSR2))
    #expect(status.catches(64))
    #expect(!status.catches(SIGTERM))
    #expect(!status.catches(0))
    #expect(!status.catches(65))
    #expect(status.seccomp == 2)
  }

  @Test func `A signal handler is visible in a real process's mask`() throws {
    let child = try TestChild("sh", "-c", "trap : USR1; echo ready; sleep 60 & wait")
    #expect(try child.line() == "ready")
    let status = try ProcessStatus.read(child.pid)
    #expect(status.catches(SIGUSR1))
    #expect(!status.catches(SIGUSR2))
    #expect(status.user == getuid())
  }
}
