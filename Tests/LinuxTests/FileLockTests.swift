import Glibc
import TestSupport
import Testing

@testable import Linux

@Suite struct `File locks` {
  @Test(
    arguments: [
      ("1: POSIX  ADVISORY  WRITE 359 00:13:11691 0 EOF", Int32?(359)),
      ("12: FLOCK  ADVISORY  READ 4711 fd:00:131 0 EOF", 4711),
      ("\t3: OFDLCK ADVISORY  READ -1 00:06:1028 0 EOF", -1),
      ("5: -> POSIX  ADVISORY  WRITE 360 00:13:11691 0 EOF", nil),
      ("4: LEASE  ACTIVE    READ 359 00:13:11691 0 EOF", nil),
      ("4: FLOCK  ADVISORY", nil), ("", nil), ("lock: x y z a b c d", nil),
    ])
  func `A line counts only if it shows a lock that a process holds`(line: String, pid: Int32?) {
    #expect(FileLocks.Lock(Substring(line))?.pid == pid)
  }

  @Test func `A file lock is counted once, even if it has many lines`() {
    let table = """
      1: FLOCK  ADVISORY  WRITE 7 00:13:11 0 EOF
      2: POSIX  ADVISORY  READ 7 00:13:12 0 99
      3: POSIX  ADVISORY  WRITE 8 00:13:13 0 EOF
      4: FLOCK  ADVISORY  WRITE 7 00:13:11 0 EOF
      """
    #expect(FileLocks.ofProcess(7, in: table).count == 2)
    #expect(FileLocks.ofProcess(9, in: table).isEmpty)
  }

  @Test func `A process waits for another program only if none of its worker's has the lock`() {
    let table = """
      1: POSIX  ADVISORY  WRITE 7 00:13:11 0 EOF
      1: -> POSIX  ADVISORY  WRITE 8 00:13:11 0 EOF
      2: FLOCK  ADVISORY  WRITE 9 00:13:12 0 EOF
      2: -> FLOCK  ADVISORY  WRITE 10 00:13:12 0 EOF
      2: -> FLOCK  ADVISORY  WRITE 11 00:13:12 0 EOF
      3: FLOCK  ADVISORY  WRITE 12 00:13:13 0 EOF
      """
    func waiter(_ waiting: Set<Int32>, of members: Set<Int32>) -> Int32? {
      FileLocks.waiter(of: waiting, in: table, members: members)
    }
    #expect(waiter([8], of: [7, 8]) == nil)
    #expect(waiter([8], of: [8, 12]) == 8)
    #expect(waiter([11], of: [11]) == 11)
    #expect(waiter([10, 11], of: [9, 10, 11]) == nil)
    #expect(waiter([12], of: [12]) == nil)
  }

  @Test func `Only a process that has locked an inode by flock is its holder`() {
    let table = """
      1: FLOCK  ADVISORY  WRITE 7 00:13:11 0 EOF
      2: POSIX  ADVISORY  READ 8 00:13:11 0 99
      3: FLOCK  ADVISORY  WRITE 9 00:13:111 0 EOF
      4: -> FLOCK  ADVISORY  WRITE 10 00:13:11 0 EOF
      5: FLOCK  ADVISORY  WRITE 0 00:13:11 0 EOF
      """
    #expect(AbandonedLocks.holders(of: 11, in: table) == [7])
  }

  @Test func `The lock of a process that runs is never released as an abandoned one`() throws {
    let scratch = try Scratch(["lock": ""])
    let path = "\(scratch.path)/lock"
    let (file, other) = (try Descriptor.open(path), try Descriptor.open(path))
    #expect(flock(file.raw, LOCK_EX) == 0)
    #expect(!AbandonedLocks.release(on: other))
    #expect(flock(other.raw, LOCK_EX | LOCK_NB) == -1)
    file.unlock()
    #expect(flock(other.raw, LOCK_EX | LOCK_NB) == 0)
  }

  @Test func `A process's file lock is counted once while it is held`() throws {
    let scratch = try Scratch(["lock": ""])
    // Other tests lock files in this process.
    let child = try TestChild(
      "python3", "-uc",
      """
      import fcntl, signal
      signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
      file = open('\(scratch.path)/lock')
      fcntl.flock(file, fcntl.LOCK_EX)
      print('held')
      signal.sigwait([signal.SIGUSR1])
      fcntl.flock(file, fcntl.LOCK_UN)
      print('free')
      signal.pause()
      """)
    #expect(try child.line() == "held")
    #expect(FileLocks.held(by: [child.pid]) == 1)
    #expect(FileLocks.held(by: [child.pid, child.pid]) == 1)
    #expect(kill(child.pid, SIGUSR1) == 0)
    #expect(try child.line() == "free")
    #expect(FileLocks.held(by: [child.pid]) == 0)
  }
}
