import Glibc
import TestSupport
import Testing

@testable import Linux

@Suite struct ProcessTreeTests {
  /// The command of a shell with two branches, one of whose leaves has lost its parent.
  private static let bushy = """
    sleep 61 &
    sh -c 'sleep 62 & sleep 63 & echo branch; wait' &
    sh -c '(sleep 64 & echo orphan)'
    wait
    """

  @Test func `Every descendant is found, orphans too, parents first`() throws {
    let child = try TestChild("sh", "-c", Self.bushy)
    #expect(try Set([child.line(), child.line()]) == ["branch", "orphan"])
    // The subshell that made the orphan ends by itself.
    #expect(try eventually { try child.tree().processes.count == 6 })
    let tree = try child.tree()
    #expect(tree.pids.first == child.pid)
    for (index, stat) in tree.processes.enumerated() {
      if let parent = tree.pids.firstIndex(of: stat.parent) { #expect(parent < index) }
    }
    #expect(!tree.contains(getpid()))
  }

  @Test func `One list of all processes is enough to find many trees`() throws {
    let (one, other) = (try TestChild("sh", "-c", Self.bushy), try TestChild("sleep", "61"))
    #expect(try Set([one.line(), one.line()]) == ["branch", "orphan"])
    #expect(try eventually { try one.tree().processes.count == 6 })
    let scan = try ProcessScan.read()
    for child in [one, other] {
      let tree = scan.tree(root: child.process.identity, session: child.pid)
      #expect(try tree.pids == child.tree().pids)
    }
  }

  @Test(
    "Stopping a tree leaves no thread running, and continuing it lets all run",
    arguments: [false, true])
  func stopping(startsFromEarlierList: Bool) throws {
    let child = try TestChild("sh", "-c", Self.bushy)
    _ = try (child.line(), child.line())
    let early = ProcessTree(processes: [try ProcessStat.read(child.pid)])
    let tree = try child.stopTree(initial: startsFromEarlierList ? early : nil)
    #expect(tree.pids.count >= 6)
    for pid in tree.pids {
      for thread in try threads(of: pid) {
        #expect(try ProcessStat.read(thread: thread, of: pid).state.isAtRest)
      }
    }
    try tree.continueAll()
    #expect(
      try eventually { try child.tree().processes.allSatisfy { $0.state != .stopped } })
  }

  @Test(.enabled(if: onlineProcessors > 1, "the parent shares a processor with a busy process"))
  func `A parent that waits for its child doesn't see that the child was stopped with it`() throws {
    // The parent comes to its stop late: it gets only the idle time of its processor, and a busy
    // process leaves none.
    let hog = try TestChild("taskset", "-c", "0", "sh", "-c", "echo on; while :; do :; done")
    #expect(try hog.line() == "on")
    for round in 0..<4 {
      let parent = try TestChild("taskset", "-c", "0", "python3", "-c", Self.waitingParent)
      #expect(try parent.line() == "waits")
      #expect(try eventually { try parent.tree().processes.last?.name == "sleep" })
      let tree = try parent.stopTree()
      try tree.continueAll()
      try #require(tree.processes.last).identity.signal(SIGKILL)
      #expect(try parent.line() == "signal 9", "round \(round)")
    }
  }

  /// A program that prints how its child was stopped or ended.
  private static let waitingParent = """
    import os
    child = os.fork()
    if child == 0:
        os.sched_setaffinity(0, {1})
        os.execvp('sleep', ['sleep', '1000'])
    print('waits', flush=True)
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    _, status = os.waitpid(child, os.WUNTRACED)
    print('stopped' if os.WIFSTOPPED(status) else f'signal {os.WTERMSIG(status)}', flush=True)
    """

  @Test func `A tree that keeps forking is stopped`() throws {
    let child = try TestChild(
      "sh", "-c", "echo on; while :; do sh -c 'sh -c : & :' & sh -c :; done")
    #expect(try child.line() == "on")
    let tree: ProcessTree
    do throws(ProcessTreeError) {
      tree = try child.stopTree()
    } catch {
      // If a process was between vfork and exec, the stop is refused, and all processes continue.
      guard case .stuck(_, _, _, .uninterruptible) = error else { throw error }
      return
    }
    // No new process appears, now or later, because all processes that could fork are stopped.
    let later = try child.tree()
    #expect(Set(later.processes.map(\.identity)).isSubset(of: tree.processes.map(\.identity)))
    #expect(later.processes.allSatisfy { $0.state.isAtRest })
    try tree.signalAll(SIGKILL)
  }

  @Test func `All threads of a stopped process with many threads are at rest`() throws {
    let child = try TestChild(
      "python3", "-c",
      """
      import threading, time
      for _ in range(8):
          threading.Thread(target=lambda: [None for _ in iter(int, 1)], daemon=True).start()
      print('spinning', flush=True)
      time.sleep(60)
      """)
    #expect(try child.line() == "spinning")
    let tree = try child.stopTree()
    let before = try ProcessStat.read(child.pid)
    #expect(before.threadCount == 9)
    for thread in try threads(of: child.pid) {
      #expect(try ProcessStat.read(thread: thread, of: child.pid).state == .stopped)
    }
    try tree.continueAll()
    #expect(try eventually { try ProcessStat.read(child.pid).cpuTicks > before.cpuTicks })
  }

  @Test func `Killing a tree ends every process of it`() throws {
    let child = try TestChild("sh", "-c", Self.bushy)
    _ = try (child.line(), child.line())
    let tree = try child.tree()
    try tree.signalAll(SIGKILL)
    #expect(try eventually { tree.processes.allSatisfy { $0.identity.hasEnded } })
    #expect(try child.tree().isEmpty)
    // A second signal reaches no process.
    #expect(try tree.signalAll(SIGTERM) == 0)
  }

  @Test func `A process that can't be signalled doesn't keep the signal from the others`() throws {
    let child = try TestChild("sh", "-c", Self.bushy)
    _ = try (child.line(), child.line())
    let tree = try child.tree()
    let fault = InjectedFault(EPERM, of: "pidfd of \(child.pid)")
    let error = #expect(throws: SystemCallError.self) {
      try fault.during { _ = try tree.signalAll(SIGKILL) }
    }
    #expect(error?.code == EPERM && tree.pids.first == child.pid)
    let others = tree.processes.map(\.identity).filter { $0.pid != child.pid }
    #expect(!others.isEmpty)
    #expect(try eventually { others.allSatisfy(\.hasEnded) })
    try tree.signalAll(SIGKILL)
  }

  private func process(
    _ pid: Int32, parent: Int32, session: Int32, started: UInt64 = 100
  ) throws -> ProcessStat {
    var stat = try ProcessStat.read(getpid())
    stat.pid = pid
    stat.parent = parent
    stat.session = session
    stat.startTime = started
    return stat
  }

  @Test func `A reused session number brings no foreign process into the tree`() throws {
    let root = ProcessIdentity(pid: 10, startTime: 100)
    let all = [
      try process(10, parent: 1, session: 10),
      try process(11, parent: 10, session: 10),
      // There is a grandchild in a session of its own, and its orphan.
      try process(12, parent: 11, session: 12), try process(13, parent: 1, session: 12),
      // This process is older than the root, so the equal number is a coincidence.
      try process(14, parent: 1, session: 10, started: 50),
      try process(15, parent: 1, session: 1),
    ]
    let members = ProcessTree.members(of: all, root: root, session: 10).map(\.pid)
    #expect(members == [10, 11, 12, 13])
  }

  @Test func `A session that another process leads by now brings no process into the tree`() throws
  {
    let root = ProcessIdentity(pid: 10, startTime: 100)
    let stranger = [
      try process(10, parent: 1, session: 10, started: 300),
      try process(11, parent: 10, session: 10, started: 301),
    ]
    #expect(ProcessTree.members(of: stranger, root: root, session: 10).isEmpty)
    // The root doesn't lead its session: the session's leader is older.
    let shell = ProcessIdentity(pid: 20, startTime: 100)
    let processes = [
      try process(9, parent: 1, session: 9, started: 90),
      try process(20, parent: 9, session: 9, started: 100),
      try process(21, parent: 1, session: 9, started: 110),
    ]
    #expect(ProcessTree.members(of: processes, root: shell, session: 9).map(\.pid) == [20, 21])
    let later = [try process(9, parent: 1, session: 9, started: 200)]
    #expect(ProcessTree.members(of: later, root: shell, session: 9).isEmpty)
    // Without a leader, the session's orphans belong to the worker.
    let orphans = [try process(12, parent: 1, session: 10, started: 150)]
    #expect(ProcessTree.members(of: orphans, root: root, session: 10).map(\.pid) == [12])
  }

  @Test
  func `A process that has got the pid of another one isn't killed with the tree of that one`()
    throws
  {
    let child = try TestChild("sleep", "1000")
    let other = ProcessIdentity(pid: child.pid, startTime: child.process.identity.startTime - 1)
    try ProcessTree.killAll(root: other, session: child.pid)
    #expect(try other.signal(SIGKILL) == false)
    #expect(!(try pollDescriptor(child.process.pidfd.raw, for: POLLIN, until: Deadline(in: .zero))))
    #expect(try child.process.identity.signal(SIGKILL))
    try child.waitForExit()
  }

  @Test func `A ring of parents loses no process`() throws {
    let ring = [try process(20, parent: 21, session: 1), try process(21, parent: 20, session: 1)]
    #expect(Set(ProcessTree.parentsFirst(ring).map(\.pid)) == [20, 21])
  }
}
