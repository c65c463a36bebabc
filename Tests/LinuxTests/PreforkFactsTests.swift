import Glibc
import TestSupport
import Testing

@testable import Linux

@Suite("Masters of prefork servers, recognized by their processes' calls") struct PreforkFactsTests
{
  private func facts(
    _ pid: Int32, parent: Int32, listeners: Set<UInt64> = [], awaited: Set<UInt64>? = []
  ) -> PreforkFacts {
    PreforkFacts(
      process: ProcessIdentity(pid: pid, startTime: UInt64(pid)), parent: parent,
      listeners: listeners, awaited: awaited)
  }

  private func masters(_ all: PreforkFacts...) -> [Int32] {
    PreforkFacts.masters(among: all).map(\.pid).sorted()
  }

  @Test(
    "A master shares its listening socket with children that wait there, and doesn't wait itself")
  func prefork() {
    #expect(
      masters(
        facts(1, parent: 0, listeners: [7]),
        facts(2, parent: 1, listeners: [7], awaited: [7]),
        facts(3, parent: 1, listeners: [7], awaited: [])) == [1])
  }

  @Test func `The shell above a master and a helper beside it aren't masters`() {
    #expect(
      masters(
        facts(1, parent: 0), facts(2, parent: 1, listeners: [7]),
        facts(3, parent: 2, listeners: [7], awaited: [7]), facts(4, parent: 1)) == [2])
  }

  @Test("A process that accepts connections itself is never delayed, whatever its children do")
  func serves() {
    #expect(
      masters(
        facts(1, parent: 0, listeners: [7], awaited: [7]),
        facts(2, parent: 1, listeners: [7], awaited: [7])
      ).isEmpty)
    // The process waits at another socket, such as that of an administrator.
    #expect(
      masters(
        facts(1, parent: 0, listeners: [7, 8], awaited: [8]),
        facts(2, parent: 1, listeners: [7], awaited: [7])
      ).isEmpty)
  }

  @Test("A server that forks a child for each connection is no master: its children don't listen")
  func forksPerConnection() {
    #expect(
      masters(facts(1, parent: 0, listeners: [7], awaited: [7]), facts(2, parent: 1)).isEmpty)
  }

  @Test func `Where a stop hides the calls of threads, those recorded before it count`() throws {
    let accepting = "43 0x3 0x0 0x0 0x0 0x0 0x0 0x7ffc00 0x7f0011\n"
    let call = try #require(WaitingCall(accepting))
    let hidden = "-1 0x7ffc00 0x7f0011\n"
    #expect(PreforkFacts.calls(shownAs: [5: hidden], after: [5: call]) == [call])
    #expect(PreforkFacts.calls(shownAs: [5: accepting], after: [:]) == [call])
    #expect(PreforkFacts.calls(shownAs: [5: hidden], after: [:]) == nil)
    #expect(PreforkFacts.calls(shownAs: [5: accepting, 6: hidden], after: [:]) == nil)
  }

  @Test func `If a process's wait isn't known, all processes wake at once`() {
    #expect(
      masters(
        facts(1, parent: 0, listeners: [7], awaited: nil),
        facts(2, parent: 1, listeners: [7], awaited: [7])
      ).isEmpty)
    #expect(
      masters(
        facts(1, parent: 0, listeners: [7]), facts(2, parent: 1, listeners: [7], awaited: nil)
      ).isEmpty)
  }

  @Test(
    "A shortage at any step of the look is reported; a process that may not be read is no master",
    arguments: [EMFILE, ENFILE, ENOMEM])
  func shortage(code: Int32) throws {
    let script = """
      import os, socket, time
      s = socket.create_server(("127.0.0.1", 0))
      if os.fork() == 0: s.accept()
      while True: time.sleep(0.2)
      """
    let server = try TestChild("python3", "-c", script)
    let masters = { PreforkFacts.masters(among: try PreforkFacts.read(server.tree())) }
    let master: Set = [server.process.identity]
    try #require(try eventually { try masters() == master })
    let tree = try server.tree()
    for step in 0... {
      let fault = InjectedFault(code, at: step..<(step + 1))
      let facts = Result { try fault.during { try PreforkFacts.read(tree) } }
      if fault.subjects.count <= step {
        #expect(step >= 6)
        break
      }
      #expect(throws: SystemCallError.self) { try facts.get() }
    }
    let hidden = InjectedFault(EACCES, of: "/proc/\(server.pid)/fd")
    #expect(try hidden.during { PreforkFacts.masters(among: try PreforkFacts.read(tree)) }.isEmpty)
  }

  @Test func `The descriptors at which a call waits are read from its arguments`() {
    let text =
      "pos:\t0\nflags:\t02\ntfd:        5 events:       19 data: 5  pos:0\ntfd: 12 events: 1"
    #expect(AwaitedDescriptors.epoll(text) == [5, 12])
    // The array has descriptor 3 for input and descriptor 4 for output.
    #expect(
      AwaitedDescriptors.poll([3, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 4, 0, 0, 0]) == [3])
    #expect(AwaitedDescriptors.select([0b1010_0000, 0b10], below: 10) == [5, 7, 9])
    #expect(AwaitedDescriptors.select([0b1010_0000, 0b10], below: 9) == [5, 7])
  }
}

@Suite("Masters of prefork servers over a worker's sleeps") struct PreforkMastersTests {
  private let master = ProcessIdentity(pid: 10, startTime: 1)

  private func tree(_ processes: (pid: Int32, parent: Int32)..., session: Int32 = 10) throws
    -> ProcessTree
  {
    let base = try ProcessStat.read(1)
    return ProcessTree(
      processes: processes.map { pid, parent in
        var stat = base
        (stat.pid, stat.parent, stat.session) = (pid, parent, session)
        stat.startTime = pid == 10 ? 1 : 2
        return stat
      })
  }

  private var facts: [PreforkFacts] {
    [
      PreforkFacts(process: master, parent: 1, listeners: [7], awaited: []),
      PreforkFacts(
        process: ProcessIdentity(pid: 11, startTime: 2), parent: 10, listeners: [7], awaited: [7]),
    ]
  }

  @Test(
    "A master stays stopped while it has children, and is remembered if a later check finds none")
  func remembers() throws {
    let masters = PreforkMasters()
    masters.record(facts, in: try tree((10, 1), (11, 10)))
    #expect(masters.isPreforkServer && !masters.areStopped)
    masters.record([], in: try tree((10, 1), (11, 10)))
    #expect(masters.keepStopped(in: try tree((10, 1), (11, 10))) == [master])
    #expect(masters.areStopped)
    #expect(masters.keepStopped(in: try tree((10, 1))).isEmpty)
    #expect(!masters.areStopped)
    masters.record([], in: try tree((12, 1)))
    #expect(!masters.isPreforkServer)
  }

  @Test("A master in this process's own session isn't stopped: its shell would see a stopped job")
  func sessionOfDaemon() throws {
    let masters = PreforkMasters()
    masters.record(facts, in: try tree((10, 1), (11, 10), session: getsid(0)))
    #expect(!masters.isPreforkServer)
  }
}
