import DaemonFakes
import Glibc
import Hibernation
import Linux
import Supervision
import TestSupport
import Testing

@testable import Daemon

@Suite("Stopping a worker that may turn out to be at work") struct SuspendJobTests {
  /// A process that is always computing.
  private final class Computing {
    let process: SpawnedProcess

    init(_ command: String = "while :; do :; done") throws {
      process = try .forTest(["/bin/sh", "-c", command])
      // The shell has been executed, and runs its loop.
      guard try eventually({ try ProcessStat.read(process.pid).cpuTicks > 0 }) else {
        throw TestFailure("process \(process.pid) doesn't run")
      }
    }

    var isStopped: Bool {
      get throws { try ProcessStat.read(process.pid).state == .stopped }
    }

    deinit { process.endForTest() }
  }

  private let computing: Computing
  private var job: SuspendJob

  init() throws {
    computing = try Computing()
    job = Self.job(for: computing)
  }

  private static func job(for computing: Computing) -> SuspendJob {
    var job = SuspendJob(
      target: HibernationTarget(
        name: "web", root: computing.process.identity, session: computing.process.pid),
      daemonSockets: [], unreadBaseline: UnreadInputBaseline(), dependsOnInputs: false)
    job.mustBeIdle = true
    return job
  }

  @Test func `A request counts as open up to a minute before the stop of an idle worker began`() {
    #expect(job.limitOfRequests(after: .seconds(3)) == TrafficMonitor.maxRequest + .seconds(3))
    var asked = job
    asked.mustBeIdle = false
    #expect(asked.limitOfRequests(after: .seconds(3)) == .seconds(5))
  }

  /// A stop ends the read of `dd` early, with the bytes that have been read.
  @Test(arguments: ["while :; do :; done", "exec dd if=/dev/zero of=/dev/null bs=64M"])
  func `A worker that is at work when it is stopped continues`(command: String) throws {
    let working = try Computing(command)
    let error = #expect(throws: (any Error).self) { try Self.job(for: working).run() }
    #expect(error.map { Refusal(suspending: $0) }?.stillStopped == nil)
    #expect(error.map { "\($0)" } == "not idle: its thread \(working.process.pid) is working")
    #expect(try eventually { try !working.isStopped })
  }

  @Test func `A worker that waits for a file lock of another program isn't suspended as idle`()
    throws
  {
    let scratch = try Scratch(["lock": ""])
    let path = scratch.path + "/lock"
    let lock = try Descriptor.open(path)
    #expect(flock(lock.raw, LOCK_EX) == 0)
    let program = "import fcntl; fcntl.flock(open(\"\(path)\"), fcntl.LOCK_EX)"
    let waiting = try SpawnedProcess.forTest(["/bin/sh", "-c", "exec python3 -c '\(program)'"])
    defer { waiting.endForTest() }
    let isWaiting = try eventually {
      let tree = try ProcessTree.discover(root: waiting.identity, session: waiting.pid)
      return FileLocks.waiter(in: tree) == waiting.pid
    }
    try #require(isWaiting)
    var job = job
    job.target = HibernationTarget(name: "web", root: waiting.identity, session: waiting.pid)
    let error = #expect(throws: (any Error).self) { try job.run() }
    #expect(
      error.map { "\($0)" }
        == "its process \(waiting.pid) waits for a file lock that another program holds")
    #expect(try ProcessStat.read(waiting.pid).state == .sleeping)
  }

  @Test func `A worker whose first process has moved out of its cgroup isn't suspended`() throws {
    // The files of a cgroup that no process is in.
    let files = try Scratch(["cgroup.events": "populated 0\nfrozen 0\n", "cgroup.freeze": "0\n"])
    var job = job
    job.target.cgroup = try WorkerCgroup(path: files.path)
    let pid = computing.process.pid
    #expect(throws: CgroupError.movedAway(pid: pid)) { try job.run() }
    #expect(try readText(files.path + "/cgroup.freeze") == "0\n")
    #expect(try !computing.isStopped)
  }

  @Test func `A child that was stopped before stays stopped when its worker continues`() throws {
    let parent = try Computing("sleep 1000 & while :; do :; done")
    let child = try #require(children(of: parent.process.pid).first)
    defer { kill(child, SIGKILL) }
    kill(child, SIGSTOP)
    try #require(try eventually { try ProcessStat.read(child).state == .stopped })
    #expect(throws: (any Error).self) { try Self.job(for: parent).run() }
    #expect(try eventually { try !parent.isStopped })
    // For a moment it is traced.
    #expect(try eventually { try ProcessStat.read(child).state == .stopped })
  }

  @Test func `A worker that got a signal before its stop continues, and handles it`() throws {
    let scratch = try Scratch()
    let mark = "\(scratch.path)/handled"
    // Short sleeps are used: a signal that arrives just before a long one would be handled only
    // after it.
    let program = """
      import signal, time
      signal.signal(15, lambda *_: open("\(mark)", "w"))
      sum(range(10_000_000))
      open("\(mark).ready", "w")
      while True: time.sleep(0.2)
      """
    let sleeping = try Computing("exec python3 -c '\(program)'")
    #expect(try eventually { access("\(mark).ready", F_OK) == 0 })
    kill(sleeping.process.pid, SIGSTOP)
    #expect(try eventually { try sleeping.isStopped })
    kill(sleeping.process.pid, SIGTERM)
    let error = #expect(throws: (any Error).self) { try Self.job(for: sleeping).run() }
    #expect(error.map { "\($0)" } == "not idle: its thread \(sleeping.process.pid) is working")
    #expect(try eventually { access(mark, F_OK) == 0 })
  }

  @Test(
    "A worker without clients stays awake for its own short timer where trims free its memory",
    arguments: [(nil, 0.5, true), (Duration.seconds(45), 0.5, false), (.seconds(45), 1000, true)])
  func shortTimer(staysAwakeBelow: Duration?, seconds: Double, sleeps: Bool) throws {
    let scratch = try Scratch()
    let mark = "\(scratch.path)/waits"
    let program = """
      import time
      sum(range(10_000_000))
      open("\(mark)", "w")
      while True: time.sleep(\(seconds))
      """
    let timed = try Computing("exec python3 -c '\(program)'")
    #expect(try eventually { access(mark, F_OK) == 0 })
    var job = Self.job(for: timed)
    job.staysAwakeBelow = staysAwakeBelow
    var outcome: Result<Asleep, any Error>?
    // It may be on its way to its next wait.
    #expect(
      try eventually {
        do { outcome = .success(try job.run()) } catch { outcome = .failure(error) }
        if case .failure(let error) = outcome { return !"\(error)".hasPrefix("not idle") }
        return true
      })
    switch outcome {
    case .success:
      #expect(sleeps)
      kill(timed.process.pid, SIGCONT)
    case .failure(let error):
      #expect(!sleeps)
      #expect("\(error)".hasPrefix("it has no clients and works by its own timer ("), "\(error)")
    case nil: Issue.record("there was no attempt")
    }
    #expect(try eventually { try !timed.isStopped })
  }

  @Test func `A worker whose inputs can't be watched for lack of descriptors runs on`() throws {
    let scratch = try Scratch()
    let fifo = "\(scratch.path)/input"
    #expect(mkfifo(fifo, 0o600) == 0)
    let open = try Computing("exec 5<>\(fifo); while :; do :; done")
    let pid = open.process.pid
    #expect(try eventually { access("/proc/\(pid)/fd/5", F_OK) == 0 })
    var job = Self.job(for: open)
    job.mustBeIdle = false
    let pidfds = "pidfd of \(pid)"
    let all = InjectedFault(EMFILE, at: 0..<0, of: pidfds)
    #expect(try all.during { try job.run() }.sources.refusal == nil)
    kill(pid, SIGCONT)
    #expect(try eventually { try !open.isStopped })
    // The last pidfd is opened for the watch.
    let last = all.subjects.count - 1
    let short = InjectedFault(EMFILE, at: last..<last + 1, of: pidfds)
    let error = #expect(throws: (any Error).self) { try short.during { try job.run() } }
    let text = error.map { "\($0)" } ?? ""
    #expect(text.hasPrefix("can't watch its sockets while it sleeps ("), "\(text); \(last)")
    #expect(try eventually { try !open.isStopped })
  }

  @Test func `A worker that can't be continued is reported as still stopped`() throws {
    var job = job
    job.wake = { _, _ in throw TestFailure("not permitted") }
    let error = #expect(throws: SuspensionRefusal.self) { try job.run() }
    let refusal = error.map { Refusal(suspending: $0) }
    #expect(refusal?.stillStopped == "not permitted")
    #expect(refusal?.text.hasPrefix("not idle: its thread ") == true)
    #expect(try eventually { try computing.isStopped })
  }
}
